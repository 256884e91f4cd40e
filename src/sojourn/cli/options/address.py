"""The FILE or APP argument of commands, and `--rate`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from sojourn.app.application import App
from sojourn.app.loading import is_address, load
from sojourn.cli.options.completion import topologies
from sojourn.errors import BadApplication, BadInput
from sojourn.registry import is_outside
from sojourn.topology import Topology
from sojourn.topology.check import shown
from sojourn.topology.file import parse_topology, read_topology

__all__ = [
    "AddressArgument",
    "RateOption",
    "import_from_here",
    "is_application",
    "load_here",
    "read_address",
    "read_rate_options",
    "read_topology_at",
    "with_rates",
]

AddressArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|APP",
        help="A topology in YAML or JSON, - for standard input; or an application: "
        "package.module:app.",
        autocompletion=topologies,
    ),
]
RateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rate",
        metavar="SOURCE=PER_S",
        help="Records per second of a source: payments=40; may be repeated. Required for each "
        "source of an application; overrides the rates in a file.",
    ),
]


def read_address(
    address: str, rate: Sequence[str] | None = None, *, in_proportion: bool = False
) -> Topology:
    """Return the topology at *address*: a file, standard input, or an application.

    If rates only matter *in proportion*, an application with a single source needs none.
    Raise a `BadInput` that names the rates and service times that are missing.
    """
    rates = read_rate_options(rate)
    if not is_application(address):
        return with_rates(read_topology_at(address), rates)
    app = load_here(address)
    if in_proportion and not rates and len(app.sources) == 1:
        rates = dict.fromkeys(app.sources, 1.0)
    _check_known(app, address, rates)
    return app.topology(rates)


def is_application(address: str) -> bool:
    """Tell whether *address* is an application, and not a file."""
    return is_address(address) and not Path(address).exists()


def read_topology_at(path: str) -> Topology:
    """Return the topology in a file, or on standard input."""
    if path == "-":
        return parse_topology(sys.stdin.read(), source="standard input")
    return read_topology(Path(path))


def load_here(address: str) -> App:
    """Return the application at *address*, which may be in the current folder."""
    import_from_here(address)
    return load(address)


def import_from_here(name: str) -> None:
    """Make the current folder importable, unless *name* is built in."""
    if is_outside(name) and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does


def read_rate_options(texts: Sequence[str] | None) -> dict[str, float]:
    """Return the rates of sources: `payments=40`.

    >>> read_rate_options(["payments=40", "refunds=0.5"])
    {'payments': 40.0, 'refunds': 0.5}
    """
    rates: dict[str, float] = {}
    for text in texts or ():
        name, _, number = (part.strip() for part in text.partition("="))
        try:
            per_s = float(number)
        except ValueError:
            per_s = -1.0
        if not name or not 0 <= per_s < inf:
            raise BadInput(f"--rate {shown(text)} is not SOURCE=PER_S; write payments=40")
        if name in rates:
            raise BadInput(f"--rate {name} is given twice; write it once")
        rates[name] = per_s
    return rates


def with_rates(topology: Topology, rates: Mapping[str, float]) -> Topology:
    """Return *topology* with *rates* for the arrivals they name.

    A source that several operators read has an arrival for each: `source to reader`.
    """
    arrivals = topology.arrivals
    for name, per_s in rates.items():
        meant = [a.name for a in arrivals if a.name == name or a.name.startswith(f"{name} to ")]
        if not meant:
            known = ", ".join(arrival.name for arrival in arrivals)
            raise BadInput(f"--rate {name}: there is no such arrival; there are {known}")
        arrivals = tuple(
            replace(arrival, per_s=per_s) if arrival.name in meant else arrival
            for arrival in arrivals
        )
    return replace(topology, arrivals=arrivals)


def _check_known(app: App, address: str, rates: Mapping[str, float]) -> None:
    """Raise a `BadApplication` that names what is missing for a plan, and how to give it."""
    unrated = [name for name in app.sources if name not in rates]
    if unrated:
        problem = f"the rate of {_and(unrated)} is unknown"
        way_out = "add " + " ".join(f"--rate {name}=40" for name in unrated)
        raise BadApplication(address, problem, way_out)
    unknown = [name for name, o in app.operators.items() if o.hints.service_s is None]
    if unknown:
        raise BadApplication(
            address,
            f"the service time of {_and(unknown)} is unknown",
            "give service_s= in seconds to @app.operator; or, after a run, use what was "
            f"measured: sojourn topology {address} --measured -o measured.yaml",
        )


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)

"""Loads the topology at an address: a file, standard input, or an application."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sojourn.app.application import App
from sojourn.app.loading import is_address, load
from sojourn.app.parts import Part, parts_of
from sojourn.errors import BadApplication, BadInput
from sojourn.registry import is_outside
from sojourn.topology import Topology
from sojourn.topology.file import parse_topology, read_topology


def topology_at(
    address: str, rates: Mapping[str, float], *, in_proportion: bool = False
) -> Topology:
    """Return the topology at *address*, with *rates* for its arrivals.

    If only the proportion of rates matters (*in_proportion*), an application with a single
    source needs none. Raise a `BadInput` that names missing rates and service times.
    """
    if address == "-":
        return with_rates(parse_topology(sys.stdin.read(), source="standard input"), rates)
    if not is_application(address):
        return with_rates(read_topology(Path(address)), rates)
    app = load_here(address)
    if in_proportion and not rates and len(app.sources) == 1:
        rates = dict.fromkeys(app.sources, 1.0)
    _check_known(app, address, rates)
    return app.topology(rates)


def parts_at(address: str) -> tuple[Part, ...]:
    """Return the parts of the application at *address*; a topology file has none."""
    return parts_of(load_here(address)) if is_application(address) else ()


def is_application(address: str) -> bool:
    """Return whether *address* names an application, not a file."""
    return is_address(address) and not Path(address).exists()


def load_here(address: str) -> App:
    """Return the application at *address*, importable from the current folder too."""
    import_from_here(address)
    return load(address)


def import_from_here(name: str) -> None:
    """Make the current folder importable, unless *name* is built in."""
    if is_outside(name) and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does


def with_rates(topology: Topology, rates: Mapping[str, float]) -> Topology:
    """Return *topology* with *rates* by arrival or source.

    A source that several operators read has an arrival for each: `source to reader`.
    """
    arrivals = {arrival.name: arrival for arrival in topology.arrivals}
    for name, per_s in rates.items():
        meant = [each for each in arrivals if each == name or each.startswith(f"{name} to ")]
        if not meant:
            known = ", ".join(arrivals)
            raise BadInput(f"--rate {name}: there is no such arrival; there are {known}")
        arrivals |= {each: replace(arrivals[each], per_s=per_s) for each in meant}
    return replace(topology, arrivals=tuple(arrivals.values()))


def _check_known(app: App, address: str, rates: Mapping[str, float]) -> None:
    """Raise a `BadInput` that names unknown sources, or missing rates and service times."""
    for name in rates:
        if name not in app.sources:
            known = ", ".join(app.sources)
            raise BadInput(f"--rate {name}: there is no such source; there are {known}")
    unrated = [name for name in app.sources if name not in rates]
    if unrated:
        problem = f"the rate of {' and '.join(unrated)} is unknown"
        way_out = "add " + " ".join(f"--rate {name}=40" for name in unrated)
        raise BadApplication(address, problem, way_out)
    unknown = [name for name, o in app.operators.items() if o.hints.service_s is None]
    if unknown:
        raise BadApplication(
            address,
            f"the service time of {' and '.join(unknown)} is unknown",
            "give service_s= in seconds to @app.operator; or, after a run, use what was "
            f"measured: sojourn topology {address} --measured -o measured.yaml",
        )

"""`sojourn topology`: the topology of an application, as it is declared or was measured."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.options.address import (
    RateOption,
    is_application,
    load_here,
    read_address,
    read_rate_options,
    read_topology_at,
    with_rates,
)
from sojourn.cli.options.completion import topologies
from sojourn.errors import BadFile, BadInput
from sojourn.history import read, read_runs
from sojourn.measure.observed import LEAST_SAMPLES
from sojourn.report.terminal.progress import working
from sojourn.service.histories import find_history
from sojourn.topology import Topology
from sojourn.topology.file import topology_text, write_topology

__all__ = ["topology"]


def topology(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|APP",
            help="A topology file, - for standard input, or an application: "
            "package.module:app. With --measured it may be left out.",
            autocompletion=topologies,
        ),
    ] = None,
    rate: RateOption = None,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured", help="What was measured last, from the history of its runs."
        ),
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Measured: the history; without it, it is looked for."
        ),
    ] = None,
    run: Annotated[
        int | None, typer.Option(help="Measured: which run; the last that measured anything.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Write it here: YAML, or .json."),
    ] = None,
) -> None:
    """Write the topology of an application, which other commands read.

    As its author declared it, or with --measured as it ran: rates, service times and what
    operators sent, so that a plan is made for what is, and not for what was thought.

    Example: sojourn topology shop.orders:app --measured -o measured.yaml
    """
    if measured:
        with working("reading what was measured"):
            described, remarks = _measured(address, history, run)
        described = with_rates(described, read_rate_options(rate))
    elif address is None or history is not None or run is not None:
        wrong = "there is nothing to write" if address is None else "--history and --run"
        raise BadInput(f"{wrong} without --measured; name an application, or add --measured")
    else:
        described, remarks = read_address(address, rate), []
    if output is None:
        typer.echo(topology_text(described, remarks=remarks), nl=False)
    else:
        write_topology(described, output, remarks=remarks)
        for remark in remarks:
            typer.echo(remark, err=True)


def _measured(
    address: str | None, file: Path | None, run: int | None
) -> tuple[Topology, list[str]]:
    """Return what was measured last, and where that was found and what was not measured."""
    path = find_history(None if address is None else _name(address)) if file is None else file
    runs = read_runs(path)
    for number in reversed(runs) if run is None else [run]:
        known = read(path, run=number)
        usable = [e.observation for e in known.episodes if e.observation.usable]
        if usable:
            break
    else:
        raise BadFile(str(path), "has no turn that measured anything", "let it run for longer")
    name, since = runs[number].topology.name, runs[number].started_at
    started = f"{since:%Y-%m-%d %H:%M:%S %Z}"
    remarks = [f"measured in run {number} of {name}, started {started}, from {path}"]
    samples = {
        name: sum(seen.operators[name].samples for seen in usable)
        for name in known.topology.operator
    }
    few = [name for name, number in samples.items() if number < LEAST_SAMPLES]
    if few:
        remarks.append(
            f"fewer than {LEAST_SAMPLES} records of {', '.join(few)} were measured: its times "
            "are those of its hints, or guesses"
        )
    return known.topology, remarks


def _name(address: str) -> str:
    if is_application(address):
        return load_here(address).name
    return read_topology_at(address).name

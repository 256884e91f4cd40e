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
from sojourn.errors import BadInput
from sojourn.history.measured import measured_topology
from sojourn.report.terminal.progress import working
from sojourn.service.histories import find_history
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
            path = history or find_history(None if address is None else _name(address))
            described, remarks = measured_topology(path, run)
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


def _name(address: str) -> str:
    if is_application(address):
        return load_here(address).name
    return read_topology_at(address).name

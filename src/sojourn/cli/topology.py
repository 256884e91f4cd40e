"""`sojourn topology`: the topology of an application, as declared or as measured."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from sojourn.app.address import is_application, load_here, topology_at, with_rates
from sojourn.cli.options.address import AnyAppOption, RateOptions
from sojourn.cli.options.completion import topologies
from sojourn.errors import BadInput
from sojourn.history.reader import measured_topology
from sojourn.report.terminal.progress import working
from sojourn.service.state_folder import find_history
from sojourn.topology.file import topology_text, write_topology


def topology(
    address: Annotated[
        str | None,
        Argument(
            metavar="FILE|APP",
            help="A topology file, - for standard input, or an application: "
            "package.module:app. Optional with --measured.",
            autocompletion=topologies,
        ),
    ] = None,
    *,
    rates: RateOptions,
    measured: Annotated[
        bool, Option("--measured", help="Use what was measured last, from the history.")
    ] = False,
    history: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="With --measured: the history file (default: that of the application).",
        ),
    ] = None,
    app: AnyAppOption = None,
    run: Annotated[
        int | None, Option(help="With --measured: number of the run (default: the last).")
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write to this file: YAML, or JSON if it ends in .json.",
        ),
    ] = None,
) -> None:
    """Write the topology of an application as a file that other commands read.

    With --measured, rates, service times and what operators send are those that were
    measured, instead of those that are declared.

    Example: sojourn topology shop.orders:app --measured -o measured.yaml
    """
    if measured:
        with working("reading the history"):
            named = app if address is None or app is not None else _name(address)
            path = history or find_history(named)
            described, remarks = measured_topology(path, run)
        described = with_rates(described, rates)
    elif history is not None or run is not None or app is not None:
        raise BadInput("--history, --run and --app need --measured; add it")
    elif address is None:
        raise BadInput("no application is named; name one, or add --measured")
    else:
        described, remarks = topology_at(address, rates), []
    if output is None:
        typer.echo(topology_text(described, remarks=remarks), nl=False)
    else:
        write_topology(described, output, remarks=remarks)
        for remark in remarks:
            typer.echo(remark, err=True)


def _name(address: str) -> str:
    if is_application(address):
        return load_here(address).name
    return topology_at(address, {}).name

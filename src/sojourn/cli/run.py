"""`sojourn run`: an application on Spark, kept inside its target for as long as it runs."""

from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from sojourn.app.application import App
from sojourn.cli.options.address import load_here
from sojourn.cli.options.allocation import MostOption, read_allocation
from sojourn.cli.options.completion import topologies
from sojourn.cli.options.duration import read_positive_s
from sojourn.cli.options.kafka import SparkEngineOptions
from sojourn.cli.options.policy import PolicyOptions
from sojourn.cli.options.stage import EveryOption, FasterOption, TimesOption
from sojourn.cli.options.target import RequiredTargetOptions
from sojourn.errors import BadInput
from sojourn.report.run_output import AsJson, ForPeople
from sojourn.service.first_plan import bounded, first_allocation, first_topology
from sojourn.service.floor import floor_warning
from sojourn.service.folders import state_folder
from sojourn.service.offered_load import OfferedLoad, offered_load
from sojourn.service.orders import Beginning, Orders
from sojourn.service.run import Start, run_it
from sojourn.simulate.trace import read_rates
from sojourn.spark.checkpoints import KeptState
from sojourn.topology import Topology
from sojourn.topology.file import read_topology

__all__ = ["run"]

_FILES = (".yaml", ".yml", ".json")


def run(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The application: package.module:app, or a topology file, whose operators "
            "then wait as long as it says.",
            autocompletion=topologies,
        ),
    ],
    *,
    target: RequiredTargetOptions,
    max_processors: MostOption = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OP=K",
            help="Processors to start with, and not those of the run before; may be repeated.",
        ),
    ] = None,
    policy: PolicyOptions,
    passive: Annotated[
        bool, typer.Option("--passive", help="Only recommend: change nothing.")
    ] = False,
    every: EveryOption = "1s",
    spark: SparkEngineOptions,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="What the next start goes on with; one of its own."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what earlier runs have done.")
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each turn here, and not into the state."),
    ] = None,
    live: Annotated[
        bool | None,
        typer.Option("--live/--no-live", help="Draw it as it goes; on a terminal it does."),
    ] = None,
    prometheus: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=1, max=65535, help="Serve metrics at this port of 127.0.0.1."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Of a topology file: send it this load over time, as timestamp,rate.",
        ),
    ] = None,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End after so much time.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Say in lines of JSON what happens.")
    ] = False,
) -> None:
    """Run an application on Spark, and keep it inside its target.

    Ctrl-C, SIGTERM and --for let it end what was begun; a second Ctrl-C stops it at once. From
    another terminal: sojourn top, scale, pause, resume, set, logs, ps. Exit status: 0 ended
    in order, 1 the application stopped by itself, 130 stopped at once.

    Example: sojourn run shop.orders:app --target-p95 1s --max-processors 22
    """
    every_s = read_positive_s(every, "--every")
    app, topology = _application(address)
    begin = read_allocation(",".join(start)) if start else {}
    most, notes = bounded(topology, begin, max_processors)
    hinted = [name for name, o in app.operators.items() if o.hints.service_s is not None]
    notes += [floor_warning(topology, target, hinted)]
    now = datetime.now().astimezone()
    begins = Beginning(
        target=target,
        most=most,
        every_s=every_s,
        active=not passive,
        midnight_s=3600.0 * now.hour + 60.0 * now.minute + now.second,
    )
    offered = None if trace is None else _offered(address, trace, times, faster)
    until_s = inf if offered is None else offered.lasts_s
    if lasts is not None:
        until_s = read_positive_s(lasts, "--for")
    # a policy that cannot be should be refused before anything is started
    make = partial(policy.made, every_s=every_s, pauses=False)
    Orders.of(make, topology, begins.target, begins.most)
    folder = state_folder(app.name) if state is None else state
    status_code = run_it(
        Start(
            app=app,
            address=address,
            topology=topology,
            allocation=first_allocation(
                topology, begin, most, {} if fresh else KeptState(folder).allocation()
            ),
            make=make,
            begins=begins,
            until_s=until_s,
            state=folder,
            fresh=fresh,
            history=history,
            prometheus=prometheus,
            spark=spark,
            offered=offered,
            notes=tuple(filter(None, notes)),
        ),
        AsJson() if json else ForPeople(live=live),
    )
    if status_code:
        raise typer.Exit(status_code)


def _application(address: str) -> tuple[App, Topology]:
    """Return the application, and what is assumed of it before anything is measured."""
    app = load_here(address)
    rates: dict[str, float] = {}
    if address.lower().endswith(_FILES):
        rates = {
            arrival.name: arrival.per_s for arrival in read_topology(Path(address)).arrivals
        }
    return app, first_topology(app, rates)


def _offered(address: str, trace: Path, times: float, faster: float) -> OfferedLoad:
    """Return the load of a topology file's stand-in."""
    if not address.lower().endswith(_FILES):
        raise BadInput(
            f"--trace sends what a topology file's operators read, and {address} is none; "
            "let others write to its topics"
        )
    return offered_load(
        read_topology(Path(address)), read_rates(trace, times=times, faster=faster)
    )

"""`sojourn run`: an application on Spark, kept inside its target for as long as it runs."""

from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from sojourn.act.policy import Policy
from sojourn.app.application import App
from sojourn.cli.address import load_here
from sojourn.cli.completion import topologies
from sojourn.cli.kafka import read_kafka_options, read_starting
from sojourn.cli.options import (
    TargetMeanOption,
    TargetP50Option,
    TargetP90Option,
    TargetP95Option,
    TargetP99Option,
    read_allocation,
    read_duration_s,
)
from sojourn.cli.policy import DrsOptions, PolicyOption, read_policy, read_quiet_hours
from sojourn.cli.stage import (
    EveryOption,
    FasterOption,
    TimesOption,
    read_required_target,
)
from sojourn.cli.steer import MaxProcessorsOption
from sojourn.decide.plan import Target
from sojourn.errors import BadInput
from sojourn.report.events import AsJson, ForPeople
from sojourn.service.first_plan import bounded, first_allocation, first_topology
from sojourn.service.floor import floor_warning
from sojourn.service.folders import state_folder
from sojourn.service.offered_load import OfferedLoad, offered_load
from sojourn.service.orders import Beginning, Orders
from sojourn.service.run import Start, run_it
from sojourn.service.spark import SparkOptions
from sojourn.simulate.trace import read_rates
from sojourn.spark.checkpoints import KeptState
from sojourn.topology import Topology
from sojourn.topology.file import read_topology

__all__ = ["run"]

_FILES = (".yaml", ".yml", ".json")
# So many looks are between two changes that can wait, and a backlog is worked off in as many.
_SOON = 5


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
    target_mean: TargetMeanOption = None,
    target_p50: TargetP50Option = None,
    target_p90: TargetP90Option = None,
    target_p95: TargetP95Option = None,
    target_p99: TargetP99Option = None,
    max_processors: MaxProcessorsOption = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OP=K",
            help="Processors to start with, and not those of the run before; may be repeated.",
        ),
    ] = None,
    policy: PolicyOption = "drs",
    passive: Annotated[
        bool, typer.Option("--passive", help="Only recommend: change nothing.")
    ] = False,
    every: EveryOption = "1s",
    t_ra: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="drs: between two changes that can wait (T_ra)."),
    ] = None,
    drain: Annotated[
        str | None, typer.Option(metavar="TIME", help="drs: in which a backlog is worked off.")
    ] = None,
    quiet_hours: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FROM-UNTIL", help="drs: change nothing from 08:00-18:00; may be repeated."
        ),
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="drs: decide for where the load is going.")
    ] = False,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,…", help="Kafka; without it, a broker of its own."),
    ] = None,
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="For Kafka's clients; may be repeated. Others can read the command line: "
            "secrets belong in --kafka-options.",
        ),
    ] = None,
    kafka_options: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same, from a file: key=value on each line."),
    ] = None,
    kafka_patience: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long no broker may answer before it gives up."),
    ] = "15m",
    broker_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Where its own broker listens; chosen if not given."
        ),
    ] = None,
    starting_offsets: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where sources begin the first time: earliest, latest, 2026-01-31T12:00:00Z.",
        ),
    ] = "earliest",
    batch: Annotated[
        str, typer.Option(metavar="TIME", help="How often what was done is committed.")
    ] = "60s",
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
    every_s = _positive_s(every, "--every")
    # nothing pauses for a change, so there is no reason to wait for long with the next
    soon_s = _SOON * every_s if policy == "drs" else None
    options = DrsOptions(
        t_ra_s=soon_s if t_ra is None else read_duration_s(t_ra),
        drain_s=soon_s if drain is None else read_duration_s(drain),
        quiet=tuple(map(read_quiet_hours, quiet_hours or ())),
        forecast=forecast,
    )
    if broker_port is not None and bootstrap_servers is not None:
        raise BadInput(
            f"--broker-port {broker_port} is for a broker of its own, and --bootstrap-servers "
            f"{bootstrap_servers} has others; leave out one of them"
        )
    spark = SparkOptions(
        servers=bootstrap_servers,
        kafka=read_kafka_options(kafka_option or (), kafka_options),
        batch_s=read_duration_s(batch),
        starting=read_starting(starting_offsets),
        patience_s=read_duration_s(kafka_patience),
        broker_port=broker_port,
    )
    app, topology = _application(address)
    begin = read_allocation(",".join(start)) if start else {}
    target = read_required_target(
        mean=target_mean, p50=target_p50, p90=target_p90, p95=target_p95, p99=target_p99
    )
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
        until_s = _positive_s(lasts, "--for")
    # a policy that cannot be should be refused before anything is started
    make = partial(_policy, policy, options)
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


def _policy(
    name: str, options: DrsOptions, target: Target, most: int | None
) -> tuple[Policy, str]:
    return read_policy(name, target, most, options)


def _positive_s(text: str, option: str) -> float:
    seconds = read_duration_s(text)
    if not 0 < seconds < inf:
        raise BadInput(f"{option} {text} is no time; write more than 0")
    return seconds

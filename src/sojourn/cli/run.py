"""`sojourn run`: an application, kept inside its target for as long as it runs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn.act.policy import Policy
from sojourn.app.application import App
from sojourn.app.stand_in import entrances
from sojourn.cli.address import (
    RateOption,
    is_application,
    load_here,
    read_rate_options,
    with_rates,
)
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
from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.report.events import AsJson, ForPeople
from sojourn.service.engines import launcher, names
from sojourn.service.first_plan import bounded, first_allocation, first_topology, guesses
from sojourn.service.floor import floor_warning
from sojourn.service.folders import state_folder
from sojourn.service.orders import LoopSettings, Orders
from sojourn.service.run import RunSettings, run_application
from sojourn.simulate.settings import SimulatorSettings
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates, Workload
from sojourn.spark.settings import SparkSettings
from sojourn.topology import Arrival, Topology
from sojourn.topology.file import read_topology

__all__ = ["run"]

# Options that only one engine has: given with another they are refused.
_ONLY = {
    "spark": (
        "bootstrap_servers", "kafka_option", "kafka_options", "kafka_patience", "broker_port",
        "starting_offsets", "batch",
    ),
    "simulator": ("rate",),
}  # fmt: skip
# So many looks are between two changes that can wait, and a backlog is worked off in as many.
_SOON = 5


def _engines(incomplete: str) -> list[str]:
    return [name for name in names() if name.startswith(incomplete)]


def run(
    ctx: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The application: package.module:app, or a topology file, whose operators "
            "then wait as long as it says.",
            autocompletion=topologies,
        ),
    ],
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"What it runs on: {', '.join(names())} (in real time, without Java and "
            "Kafka), or yours, package.module:name.",
            autocompletion=_engines,
        ),
    ] = "spark",
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
            help="Send this load over time, as timestamp,rate; on Spark of a topology file.",
        ),
    ] = None,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    rate: RateOption = None,
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End after so much time.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Say in lines of JSON what happens.")
    ] = False,
) -> None:
    """Run an application on Spark, or on the simulator, and keep it inside its target.

    Ctrl-C, SIGTERM and --for let it end what was begun; a second Ctrl-C stops it at once. From
    another terminal: sojourn top, scale, pause, resume, set, logs, ps. Exit status: 0 ended
    in order, 1 the application stopped by itself, 130 stopped at once.

    Examples: sojourn run shop.orders:app --target-p95 1s --max-processors 22 ·
    sojourn run vld.yaml --engine simulator --target-p95 3s
    """
    _refuse_options_of_others(ctx, engine)
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
    kafka = read_kafka_options(kafka_option or (), kafka_options)
    what = _application(address, engine, read_rate_options(rate))
    load = None if trace is None else read_rates(trace, times=times, faster=faster)
    settings: object = None
    if engine == "spark":
        settings = SparkSettings(
            servers=bootstrap_servers,
            kafka=kafka,
            batch_s=read_duration_s(batch),
            starting=read_starting(starting_offsets),
            patience_s=read_duration_s(kafka_patience),
            broker_port=broker_port,
            load={} if load is None else _sent(address, load),
        )
    elif engine == "simulator":
        rates = {} if load is None else _shared(load, what.topology.arrivals)
        settings = SimulatorSettings(workload=Workload(rates=rates))
    elif load is not None:
        raise BadInput(f"--trace is sent by spark and simulator, and the engine is {engine}")
    begin = read_allocation(",".join(start)) if start else {}
    target = read_required_target(
        mean=target_mean, p50=target_p50, p90=target_p90, p95=target_p95, p99=target_p99
    )
    most, notes = bounded(what.topology, begin, max_processors)
    first_allocation(what.topology, begin, most)  # refused before anything is started
    notes += [*what.guesses, floor_warning(what.topology, target, what.known)]
    now = datetime.now().astimezone()
    loop = LoopSettings(
        target=target,
        most=most,
        every_s=every_s,
        active=not passive,
        midnight_s=3600.0 * now.hour + 60.0 * now.minute + now.second,
    )
    until_s = inf if load is None else load.points[-1][0]
    if lasts is not None:
        until_s = _positive_s(lasts, "--for")
    # a policy that cannot be should be refused before anything is started
    make = partial(_policy, policy, options)
    Orders.of(make, what.topology, loop.target, loop.most)
    name = what.app.name
    status_code = run_application(
        RunSettings(
            name=name,
            address=address,
            topology=what.topology,
            engine=engine,
            launch=partial(launcher(engine), what.app, address, settings),
            make=make,
            loop=loop,
            until_s=until_s,
            state=_state(name, engine) if state is None else state,
            start=begin,
            fresh=fresh,
            history=history,
            metrics=None if prometheus is None else partial(_metrics, prometheus),
            notes=tuple(filter(None, notes)),
        ),
        AsJson() if json else ForPeople(live=live),
    )
    if status_code:
        raise typer.Exit(status_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Application:
    """An application, and what is assumed of it before anything is measured.

    Of the operators that are *known* somebody said how long they take.
    """

    app: App
    topology: Topology
    known: frozenset[str]
    guesses: tuple[str, ...] = ()


def _application(address: str, engine: str, rates: dict[str, float]) -> _Application:
    """Return the application at *address*, a module's or a topology file's."""
    if not is_application(address) and engine == "simulator":
        topology = with_rates(read_topology(Path(address)), rates)
        return _Application(
            app=App(topology.name), topology=topology, known=frozenset(topology.operator)
        )
    app = load_here(address)
    if not is_application(address):
        arrivals = entrances(read_topology(Path(address)))
        rates = {arrival.name: arrival.per_s for arrival in arrivals}
    elif unknown := rates.keys() - app.sources.keys():
        sources = ", ".join(app.sources)
        raise BadInput(f"--rate {min(unknown)}: there is no such source; there are {sources}")
    known = (name for name, o in app.operators.items() if o.hints.service_s is not None)
    return _Application(
        app=app,
        topology=first_topology(app, rates),
        known=frozenset(known),
        # what runs is measured in a moment, and what is simulated is as it is guessed
        guesses=tuple(guesses(app, rates)) if engine == "simulator" else (),
    )


def _refuse_options_of_others(ctx: typer.Context, engine: str) -> None:
    for owner, parameters in _ONLY.items():
        for name in parameters:
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE" and owner != engine:
                raise BadInput(
                    f"--{name.replace('_', '-')} is for the engine {owner}, and this is "
                    f"{engine}; leave it out"
                )


def _sent(address: str, load: Rates) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return what is sent to the sources of a topology file's stand-in."""
    if is_application(address):
        raise BadInput(
            f"--trace sends what a topology file's operators read, and {address} is none; "
            "let others write to its topics"
        )
    arrivals = entrances(read_topology(Path(address)))
    return {name: rates.points for name, rates in _shared(load, arrivals).items()}


def _shared(load: Rates, arrivals: Sequence[Arrival]) -> dict[str, Rates]:
    """Return *load* as *arrivals* share it."""
    all_per_s = sum(arrival.per_s for arrival in arrivals)
    return {arrival.name: load.times(arrival.per_s / all_per_s) for arrival in arrivals}


def _state(name: str, engine: str) -> Path:
    """Return the folder of an application: what an engine keeps is of no use to another."""
    return state_folder(name if engine == "spark" else f"{name}.{engine}")


def _metrics(
    port: int, status: Callable[[], Mapping[str, Any]]
) -> AbstractContextManager[object]:
    from sojourn.report.prometheus import Metrics  # noqa: PLC0415 - slow to import

    return Metrics(port, status)


def _policy(
    name: str, options: DrsOptions, target: Target, most: int | None
) -> tuple[Policy, str]:
    return read_policy(name, target, most, options)


def _positive_s(text: str, option: str) -> float:
    seconds = read_duration_s(text)
    if not 0 < seconds < inf:
        raise BadInput(f"{option} {text} is no time; write more than 0")
    return seconds

"""`sojourn run`: run an application and keep it inside its target."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from sojourn.act.node_scaling import NodeBounds
from sojourn.app.address import import_from_here
from sojourn.cli.options import LiveOption
from sojourn.cli.options.completion import completing, topologies
from sojourn.cli.options.goal import MostOption, ObjectiveOptions, read_allocation
from sojourn.cli.options.group import Group, option_names
from sojourn.cli.options.kafka import SparkEngineOptions
from sojourn.cli.options.load import LoadOptions, OfferedLoad
from sojourn.cli.options.policy import (
    PassiveOption,
    PlacementOption,
    PolicyOptions,
    read_placement,
)
from sojourn.cli.options.stage import EveryOption
from sojourn.decide.place import DEFAULT
from sojourn.errors import BadInput
from sojourn.measure.duration import read_positive_s
from sojourn.report.events import AsJson, ForPeople
from sojourn.service.engines import launcher, names
from sojourn.service.first_plan import Assumptions, bounded
from sojourn.service.folders import state_folder
from sojourn.service.orders import LoopSettings
from sojourn.service.run import Metrics, RunSettings, run_application
from sojourn.simulate.workload import SimulatorSettings, Workload
from sojourn.spark.driver.settings import SparkSettings, read_folder

# Options that only one engine has; with another engine they are an error.
_ONLY = {"spark": option_names(SparkEngineOptions), "simulator": ("rate",)}


def _read_engine(
    *,
    ctx: typer.Context,
    engine: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"Engine: {', '.join(names())} (in real time, without Java and Kafka), or "
            "your own: package.module:name.",
            autocompletion=completing(names),
        ),
    ] = "spark",
) -> str:
    import_from_here(engine)
    for owner, options in _ONLY.items():
        for name in options:
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE" and owner != engine:
                raise BadInput(
                    f"--{name.replace('_', '-')} is for the engine {owner}, not {engine}; "
                    "leave it out"
                )
    return engine


_EngineOption = Annotated[str, Group(_read_engine)]


def run(
    address: Annotated[
        str,
        Argument(
            metavar="ADDRESS",
            help="The application, package.module:app; or a topology file, whose operators "
            "only sleep for their service time.",
            autocompletion=topologies,
        ),
    ],
    *,
    engine: _EngineOption,
    objective: ObjectiveOptions,
    max_processors: MostOption = None,
    start: Annotated[
        list[str] | None,
        Option(
            metavar="OP=K",
            help="Processors to start with (default: those of the last run); may be repeated.",
        ),
    ] = None,
    policy: PolicyOptions,
    passive: PassiveOption = False,
    every: EveryOption = None,
    spark: SparkEngineOptions,
    state: Annotated[
        str | None,
        Option(
            metavar="DIR",
            help="Folder for checkpoints and logs, on a disk of this machine (default: one per "
            "application).",
        ),
    ] = None,
    fresh: Annotated[
        bool, Option("--fresh", help="Delete the checkpoints and logs of earlier runs first.")
    ] = False,
    history: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write each turn here (default: in the state folder)."),
    ] = None,
    live: LiveOption = None,
    prometheus: Annotated[
        int | None,
        Option(
            metavar="PORT", min=1, max=65535, help="Serve metrics at this port of 127.0.0.1."
        ),
    ] = None,
    placement: PlacementOption = DEFAULT,
    price_per_hour: Annotated[
        float | None,
        Option(
            metavar="PRICE",
            help="Price of a node per hour: `top`, `ps --json` and the summary show the bill.",
        ),
    ] = None,
    load: LoadOptions,
    lasts: Annotated[
        str | None, Option("--for", metavar="TIME", help="Stop after this time.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print events as lines of JSON.")] = False,
) -> None:
    """Run an application on Spark, or on the simulator, and keep it inside its target.

    Ctrl-C, SIGTERM and --for: finish the current batch, then exit. A second Ctrl-C: exit now;
    work is repeated at the next start. From another terminal: sojourn top, scale, pause,
    resume, set, stop, logs, ps. Exit status: 0 after a clean stop, 1 if the application failed,
    130 after a second Ctrl-C.

    Examples: sojourn run shop.orders:app --target-p95 1s --max-processors 22 ·
    sojourn run vld.yaml --engine simulator --target-p95 3s
    """
    what = Assumptions.at(address, load.rates, simulated=engine == "simulator")
    every_s = objective.every_s if every is None else read_positive_s(every, "--every")
    begin = read_allocation(",".join(start)) if start else {}
    cores = spark.expected_cores if engine == "spark" else None
    most, notes = bounded(what.topology, begin, max_processors, cores)
    read_placement(placement)  # the user's own may be in the current folder
    settings = RunSettings(
        name=what.app.name,
        address=address,
        topology=what.topology,
        engine=engine,
        launch=partial(
            launcher(engine),
            what.app,
            address,
            _engine_settings(engine, spark, load, what, address),
        ),
        make=partial(policy.made, every_s=every_s, pauses=False),
        loop=LoopSettings(
            objective=objective,
            most=most,
            every_s=every_s,
            active=not passive,
            midnight_s=_since_midnight_s(),
            price_per_hour=price_per_hour,
            placement=placement,
            nodes=spark.bounds(0) if engine == "spark" else NodeBounds(),
        ),
        until_s=load.lasts_s if lasts is None else read_positive_s(lasts, "--for"),
        state=state_folder(what.app.name, engine) if state is None else read_folder(state),
        start=begin,
        fresh=fresh,
        history=history,
        metrics=None if prometheus is None else _metrics(prometheus),
        notes=(
            *notes,
            *what.notes(objective),
            *filter(None, [objective.too_seldom(every_s)]),
        ),
    )
    status = run_application(settings, AsJson() if json else ForPeople(live=live))
    if status:
        raise typer.Exit(status)


def _engine_settings(
    engine: str, spark: SparkSettings, load: OfferedLoad, what: Assumptions, address: str
) -> object:
    """Return the settings of *engine*, including the load of a trace.

    Raise `BadInput` if there is a trace that the engine cannot generate.
    """
    if engine == "spark":
        return replace(spark, load=load.by_source(what.app, address))
    if engine == "simulator":
        rates = {} if load.trace is None else load.trace.among(what.topology.arrivals)
        return SimulatorSettings(workload=Workload(rates=rates))
    if load.trace is not None:
        raise BadInput(
            f"--trace needs the engine spark or simulator, not {engine}; leave it out"
        )
    return None


def _since_midnight_s() -> float:
    now = datetime.now().astimezone()
    return 3600.0 * now.hour + 60.0 * now.minute + now.second


def _metrics(port: int) -> Metrics:
    from sojourn.report.prometheus import serve_metrics  # noqa: PLC0415 - slow to import

    return partial(serve_metrics, port)

"""`sojourn run`: run an application and keep it inside its target."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from sojourn.app.address import is_application
from sojourn.app.application import App
from sojourn.app.waiting_app import entrances
from sojourn.cli.options.address import read_rate_options
from sojourn.cli.options.allocation import MostOption, read_allocation
from sojourn.cli.options.completion import topologies
from sojourn.cli.options.engine import EngineOption
from sojourn.cli.options.kafka import SparkEngineOptions
from sojourn.cli.options.output import LiveOption
from sojourn.cli.options.policy import PassiveOption, PolicyOptions
from sojourn.cli.options.stage import EveryOption, FasterOption, TimesOption
from sojourn.cli.options.target import RequiredTargetOptions
from sojourn.errors import BadInput
from sojourn.measure.duration import read_positive_s
from sojourn.report.events import AsJson, ForPeople
from sojourn.service.assumptions import Assumptions
from sojourn.service.engines import launcher
from sojourn.service.first_plan import bounded, first_plan
from sojourn.service.floor import floor_warning
from sojourn.service.folders import state_folder
from sojourn.service.orders import LoopSettings, Orders
from sojourn.service.run import RunSettings, run_application
from sojourn.simulate.settings import SimulatorSettings
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates, Workload
from sojourn.spark.driver.state.folder_address import read_folder
from sojourn.topology.file import read_topology

__all__ = ["run"]


def run(
    address: Annotated[
        str,
        Argument(
            metavar="ADDRESS",
            help="The application, package.module:app; or a topology file, whose operators "
            "only wait for their service time.",
            autocompletion=topologies,
        ),
    ],
    *,
    engine: EngineOption,
    target: RequiredTargetOptions,
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
    every: EveryOption = "1s",
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
    price_per_hour: Annotated[
        float | None,
        Option(
            metavar="PRICE",
            help="Price of a node for an hour: top, ps --json and the summary have the bill.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        Option(
            metavar="CSV",
            help="Generate this load: CSV with timestamp,rate. On Spark an application sends "
            "the samples of its sources.",
        ),
    ] = None,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    rate: Annotated[
        list[str] | None,
        Option(
            metavar="SOURCE=PER_S",
            help="simulator: records per second of a source: payments=40; may be repeated.",
        ),
    ] = None,
    lasts: Annotated[
        str | None, Option("--for", metavar="TIME", help="Stop after this time.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print events as lines of JSON.")] = False,
) -> None:
    """Run an application on Spark, or on the simulator, and keep it inside its target.

    Ctrl-C, SIGTERM and --for: finish the current batch, then exit. A second Ctrl-C: exit now;
    work is repeated at the next start. From another terminal: sojourn top, scale, pause,
    resume, set, logs, ps. Exit status: 0 after a clean stop, 1 if the application failed, 130
    after a second Ctrl-C.

    Examples: sojourn run shop.orders:app --target-p95 1s --max-processors 22 ·
    sojourn run vld.yaml --engine simulator --target-p95 3s
    """
    every_s = read_positive_s(every, "--every")
    folder = None if state is None else read_folder(state)
    rates, simulated = read_rate_options(rate), engine == "simulator"
    what = Assumptions.at(address, rates, simulated=simulated)
    load = None if trace is None else read_rates(trace, times=times, faster=faster)
    settings: object = None
    if engine == "spark":
        sent = {} if load is None else _sent(what.app, address, load)
        settings = replace(spark, load=sent)
    elif simulated:
        shared = {} if load is None else load.among(what.topology.arrivals)
        settings = SimulatorSettings(workload=Workload(rates=shared))
    elif load is not None:
        raise BadInput(
            f"--trace needs the engine spark or simulator, not {engine}; leave it out"
        )
    begin = read_allocation(",".join(start)) if start else {}
    cores = spark.expected_cores if engine == "spark" else None
    most, notes = bounded(what.topology, begin, max_processors, cores)
    first_plan(what.topology, begin, most)  # checked before anything starts
    notes += [*what.guesses, floor_warning(what.topology, target, what.known)]
    now = datetime.now().astimezone()
    loop = LoopSettings(
        target=target,
        most=most,
        every_s=every_s,
        active=not passive,
        midnight_s=3600.0 * now.hour + 60.0 * now.minute + now.second,
        price_per_hour=price_per_hour,
    )
    until_s = inf if load is None else load.points[-1][0]
    if lasts is not None:
        until_s = read_positive_s(lasts, "--for")
    # a bad policy is refused before anything starts
    make = partial(policy.made, every_s=every_s, pauses=False)
    Orders.of(make, what.topology, loop.target, loop.most)
    metrics = None
    if prometheus is not None:
        from sojourn.report.prometheus import serve_metrics  # noqa: PLC0415 - slow to import

        metrics = partial(serve_metrics, prometheus)
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
            state=folder or state_folder(name if engine == "spark" else f"{name}.{engine}"),
            start=begin,
            fresh=fresh,
            history=history,
            metrics=metrics,
            notes=tuple(filter(None, notes)),
        ),
        AsJson() if json else ForPeople(live=live),
    )
    if status_code:
        raise typer.Exit(status_code)


def _sent(app: App, address: str, load: Rates) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the load of each source; those of an application share it equally."""
    if not is_application(address):
        shared = load.among(entrances(read_topology(Path(address))))
        return {name: rates.points for name, rates in shared.items()}
    from sojourn.spark.driver.load.samples import load_sources  # noqa: PLC0415 - optional

    each = {name: load.times(1 / len(app.sources)).points for name in app.sources}
    load_sources(app, address, each)  # checked before anything starts
    return each

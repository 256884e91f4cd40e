"""`sojourn reproduce`: the figures and tables of the DRS papers, on the simulator or Spark."""

import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from typer import Argument, Option

from sojourn.cli.options import JsonOption
from sojourn.errors import BadInput
from sojourn.measure.duration import read_duration_s
from sojourn.registry import optional
from sojourn.report.json.output import print_json
from sojourn.report.plot.panels import draw_panels, figure
from sojourn.report.terminal.progress import loading_simulator
from sojourn.service.interrupts import interrupt
from sojourn_papers.cli.experiment_list import show_listing, show_verdicts
from sojourn_papers.experiments import names
from sojourn_papers.experiments.verdicts import listing, verdicts

if TYPE_CHECKING:
    from sojourn_papers.experiments.runner import Draw, Reproduced

DOES_NOT_HOLD = 1
"""The exit status if a claim does not hold."""

EngineName = Literal["simulator", "spark"]
"""The engines that experiments run on."""


def reproduce(
    name: Annotated[
        list[str] | None, Argument(metavar="NAME…", help="Experiments: drs15-fig6.")
    ] = None,
    list_: Annotated[
        bool, Option("--list", help="List the experiments and their claims.")
    ] = False,
    all_: Annotated[bool, Option("--all", help="Run every experiment.")] = False,
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder for the results.")] = Path(
        "build/reproduce"
    ),
    seed: Annotated[int, Option(min=0, help="The same seed gives the same runs.")] = 1,
    engine: Annotated[
        EngineName, Option(help="spark runs the experiments on re-allocation, in real time.")
    ] = "simulator",
    faster: Annotated[
        float | None,
        Option(help="spark: speed-up factor (default: the highest for two cores)."),
    ] = None,
    within: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="spark: time limit of each experiment, which is shortened to fit.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Test the claims of the DRS papers, figure by figure, on the simulator or on Spark.

    It writes a CSV and a plot for each, and report.md with all verdicts. Exit status 1: a
    claim does not hold.

    Example: sojourn reproduce drs15-fig6 drs17-fig10
    """
    if list_:
        listed = listing(_possible(engine))
        if json:
            print_json(listed)
        else:
            show_listing(listed)
        return
    chosen = None if all_ else tuple(dict.fromkeys(name or ()))
    if chosen == ():
        raise BadInput("no experiment is named; name some, or write --all or --list")
    if engine == "spark":
        within_s = None if within is None else read_duration_s(within)
        done = _on_spark(chosen, seed, out, faster=faster, within_s=within_s)
    elif faster is not None or within is not None:
        raise BadInput("--faster and --within need --engine spark; add it")
    else:
        done = _on_simulator(chosen or names(), seed, out)
    report = verdicts(done, seed, engine)
    if json:
        print_json(report)
    else:
        show_verdicts(report, out / "report.md")
    if not all(one.outcome.holds for one in done):
        raise typer.Exit(DOES_NOT_HOLD)


def _possible(engine: EngineName) -> tuple[str, ...]:
    if engine == "simulator":
        return names()
    from sojourn_papers.experiments.span import reallocating  # noqa: PLC0415 - imports every paper

    return tuple(reallocating())


def _on_simulator(chosen: Sequence[str], seed: int, out: Path) -> "list[Reproduced]":
    from rich.progress import Progress  # noqa: PLC0415 - slow to import

    with loading_simulator():
        from sojourn_papers.experiments.on_simulator import simulated  # noqa: PLC0415 - numba is optional
    from sojourn_papers.experiments.bench import Bench  # noqa: PLC0415 - slow to import
    from sojourn_papers.experiments.runner import reproduce as run  # noqa: PLC0415
    from sojourn_papers.experiments.runner import write_page  # noqa: PLC0415

    done = []
    bench, errors = Bench(engine=simulated, seed=seed), Console(stderr=True)
    with Progress(console=errors, transient=True) as bar:
        task = bar.add_task(f"reproducing {chosen[0]}", total=len(chosen))
        for one in run(chosen, bench, out, _drawing(errors)):
            done.append(one)
            following = chosen[min(len(done), len(chosen) - 1)]
            bar.update(task, advance=1, description=f"reproducing {following}")
    write_page(done, seed, out)
    return done


def _on_spark(
    chosen: Sequence[str] | None,
    seed: int,
    out: Path,
    *,
    faster: float | None,
    within_s: float | None,
) -> "list[Reproduced]":
    from rich.progress import Progress  # noqa: PLC0415 - slow to import

    from sojourn_papers.experiments.pace import Pace  # noqa: PLC0415 - imports every paper
    from sojourn_papers.experiments.runner import reproduce as run  # noqa: PLC0415
    from sojourn_papers.experiments.runner import write_page  # noqa: PLC0415

    paces = Pace.chosen(chosen, faster=faster, within_s=within_s)
    with optional("running on Spark needs", "spark"):
        from sojourn_papers.experiments.on_spark import spark_bench  # noqa: PLC0415
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # nothing is left at any
        signal.signal(end, interrupt)
    done: list[Reproduced] = []
    errors = Console(stderr=True)
    draw = _drawing(errors)
    for name, pace in paces.items():
        lasts = max(1, round(pace.wall_s / 60))
        errors.print(f"{name}: {pace.said}, about {lasts} minutes", highlight=False)
    with Progress(console=errors, transient=True) as bar:
        for name, pace in paces.items():
            task = bar.add_task(f"reproducing {name}", total=pace.looks)
            bench = spark_bench(pace, seed, partial(bar.advance, task))
            done += run([name], bench, out, draw)
    write_page(done, seed, out, "Spark")
    return done


def _drawing(errors: Console) -> "Draw | None":
    """Return the function that plots; None, with a message, if matplotlib is missing."""
    try:
        figure(1, 1)
    except BadInput as error:
        errors.print(f"no plots: {error}", highlight=False, markup=False)
        return None
    return draw_panels

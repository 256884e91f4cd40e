"""`sojourn rehearse`: what a loop would do to a load, on the simulator."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sojourn.act.policy import Policy
from sojourn.cli.options.address import AddressArgument, RateOption, read_address
from sojourn.cli.options.allocation import MostOption
from sojourn.cli.options.output import JsonOption
from sojourn.cli.options.policy import PolicyOptions
from sojourn.cli.options.shapes import ShapesOptions
from sojourn.cli.options.stage import PlayOptions, TraceOption
from sojourn.cli.options.target import RequiredTargetOptions
from sojourn.cli.options.time_of_day import read_time_of_day_s
from sojourn.history import HistoryFile, Run
from sojourn.knowledge import Episode
from sojourn.report.json.plans import print_json
from sojourn.report.terminal.history import clock
from sojourn.report.terminal.live import View
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.watch import Lines, Picture, Unseen, Watch

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.rehearsal import Rehearsal, Stage

__all__ = ["rehearse"]

_INTERRUPTED = 130
# Where there is no terminal there is no width to keep to.
_WIDEST = 10_000


def rehearse(
    address: AddressArgument,
    trace: TraceOption,
    *,
    rate: RateOption = None,
    policy: PolicyOptions,
    target: RequiredTargetOptions,
    processors: MostOption = None,
    play: PlayOptions,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 1,
    shapes: ShapesOptions,
    passive: Annotated[
        bool, typer.Option("--passive", help="Only recommend: change nothing.")
    ] = False,
    begins_at: Annotated[
        str, typer.Option(metavar="HH:MM", help="The time of the day when the trace begins.")
    ] = "00:00",
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each turn: `sojourn history` reads it."),
    ] = None,
    live: Annotated[
        bool | None,
        typer.Option("--live/--no-live", help="Draw it as it goes; on a terminal it does."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(min=0, help="Live: simulated seconds per second; 0 as fast as it goes."),
    ] = 60.0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the whole run: PNG, SVG or PDF."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Rehearse a loop on a load that changes: what it would do, and why.

    It starts with the fewest processors that meet the target at the first rate.
    Ctrl-C ends it, with what was reached so far.

    Example: sojourn rehearse examples/vld.yaml --trace examples/doubling.csv --target-p95 3s
    """
    topology = read_address(address, rate, in_proportion=True)
    decides, said = policy.made(target, processors)
    stage = play.stage(
        topology,
        trace,
        target=target,
        most=processors,
        workload=shapes.workload(topology),
        midnight_s=read_time_of_day_s(begins_at),
    )
    from sojourn.report.terminal.rehearsal import (  # noqa: PLC0415 - numba is optional
        rehearsal_report,
        show_begin,
        show_end,
    )

    run = _begun(stage, f"{said}, only recommending" if passive else said)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDEST)
    watch: Watch = Unseen() if json else Lines()
    if (console.is_terminal and not json) if live is None else live:
        view = View(topology, target, stage.lasts_s)
        # JSON is alone on standard output
        watch = Picture(view, speed, Console(stderr=True) if json else Console())
    episodes: list[Episode] = []
    # where changes are printed, or drawn, it is seen anyway
    unseen = not isinstance(watch, Lines | Picture)
    waits = working(f"rehearsing {topology.name}") if unseen else nullcontext(_nothing)
    with (
        waits as far,
        nullcontext() if history is None else HistoryFile(history) as file_of_turns,
    ):
        if file_of_turns is not None:
            file_of_turns.begin(run)
        if not json:
            show_begin(stage, run, console)

        def turn(episode: Episode) -> None:
            if file_of_turns is not None:
                file_of_turns.append(episode)
            episodes.append(episode)
            far(f"{clock(episode.observation.at_s)} of {clock(stage.lasts_s)}")
            watch.turn(episode)

        done = _played(
            stage,
            decides,
            watch,
            turn,
            start=run.allocation,
            seed=seed,
            active=not passive,
        )
    if plot is not None and episodes:
        from sojourn.report.plot.history import draw_history  # noqa: PLC0415 - a second to import

        draw_history(episodes, plot, target, f"{topology.name}: {run.policy}")
    if json:
        print_json(rehearsal_report(stage, run, seed, episodes, done))
    else:
        show_end(stage, run, episodes, done, console)
    if done is None:
        raise typer.Exit(_INTERRUPTED)


def _nothing(_far: str) -> None:
    pass


def _begun(stage: "Stage", policy: str) -> Run:
    first = stage.rates.at(0.0)
    return Run(
        topology=stage.topology.scaled(max(first, 1e-3) / stage.topology.arrivals_per_s),
        allocation=stage.allocation(first),
        started_at=datetime.now(UTC),
        every_s=stage.every_s,
        policy=policy,
        target=stage.target,
        midnight_s=stage.midnight_s,
    )


def _played(
    stage: "Stage",
    policy: Policy,
    watch: Watch,
    turn: Callable[[Episode], None],
    *,
    start: Mapping[str, int],
    seed: int,
    active: bool,
) -> "Rehearsal | None":
    """Return the run; None where it was interrupted."""
    from sojourn.rehearsal import rehearse as run  # noqa: PLC0415 - numba is optional

    try:
        with watch:
            return run(stage, policy, start=start, seed=seed, active=active, turn=turn)
    except KeyboardInterrupt:
        return None

"""`sojourn rehearse`: the loop on a changing load, on the simulator."""

from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer import Option

from sojourn.act.policy.drs.caution import read_time_of_day_s
from sojourn.app.address import topology_at
from sojourn.cli.options import JsonOption, LiveOption, PlotOption
from sojourn.cli.options.address import AddressArgument, RateOptions
from sojourn.cli.options.goal import MostOption, ObjectiveOptions
from sojourn.cli.options.policy import PassiveOption, PolicyOptions
from sojourn.cli.options.stage import ShapesOptions, StageOptions, TraceOption
from sojourn.history import HistoryFile
from sojourn.knowledge import Episode
from sojourn.report.json.output import print_json
from sojourn.report.json.runs import rehearsal_report
from sojourn.report.plot.history import draw_history
from sojourn.report.terminal.live import View
from sojourn.report.terminal.progress import lines, picture, progress
from sojourn.report.terminal.runs import show_begin, show_end
from sojourn.service.interrupts import Interrupts

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Rehearsal, Stage

_INTERRUPTED = 130


def rehearse(
    address: AddressArgument,
    trace: TraceOption,
    *,
    rates: RateOptions,
    policy: PolicyOptions,
    objective: ObjectiveOptions,
    processors: MostOption = None,
    make_stage: StageOptions,
    seed: Annotated[int, Option(min=0, help="The same seed gives the same run.")] = 1,
    shapes: ShapesOptions,
    passive: PassiveOption = False,
    begins_at: Annotated[
        str, Option(metavar="HH:MM", help="Time of day at which the trace begins.")
    ] = "00:00",
    history: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write each turn to this file, for `sojourn history`."),
    ] = None,
    live: LiveOption = None,
    speed: Annotated[
        float, Option(min=0, help="With --live: simulated seconds per second; 0: no limit.")
    ] = 60.0,
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Run the loop on a changing load on the simulator, and show what it does and why.

    It starts with the fewest processors that meet the target at the first rate.
    Ctrl-C: stop, and print the results so far.

    Example: sojourn rehearse examples/vld.yaml --trace examples/doubling.csv --target-p95 3s
    """
    topology = topology_at(address, rates, in_proportion=True)
    target = objective.target
    stage: Stage = make_stage(
        topology,
        trace,
        objective=objective,
        most=processors,
        workload=shapes(topology),
        midnight_s=read_time_of_day_s(begins_at),
    )
    from sojourn.simulate import rehearsal  # noqa: PLC0415 - numba is optional

    decides, said = policy.made(
        target, processors, every_s=stage.every_s, pauses=stage.pause_s > 0
    )
    said = f"{said}, only recommending" if passive else said
    run = stage.begun(said, datetime.now(UTC))
    by_itself = Console().is_terminal and not json
    if by_itself if live is None else live:
        view = View(topology, target, stage.lasts_s)
        watch = picture(view, speed, Console(stderr=json))  # standard output is for the JSON
    else:
        watch = progress(f"rehearsing {topology.name}", stage.lasts_s) if json else lines()
    episodes: list[Episode] = []
    done: Rehearsal | None = None
    showing = False
    with (
        Interrupts() as interrupts,
        nullcontext() if history is None else HistoryFile(history) as file,
    ):
        # an exception inside compiled code may end the process: raise KeyboardInterrupt only
        # while a turn is shown, and otherwise at its end
        interrupts.breaks = lambda: showing
        if file is not None:
            file.begin(run)
        if not json:
            show_begin(stage, run)

        def turn(episode: Episode) -> None:
            nonlocal showing
            if file is not None:
                file.append(episode)
            episodes.append(episode)
            showing = True
            show(episode)
            showing = False
            if interrupts.times:
                raise KeyboardInterrupt

        # after an interrupt, the results so far are still printed
        with suppress(KeyboardInterrupt), watch as show:
            done = rehearsal.rehearse(
                stage, decides, start=run.plan, seed=seed, active=not passive, turn=turn
            )
    if plot is not None and episodes:
        draw_history(episodes, plot, target, f"{topology.name}: {run.policy}")
    if json:
        print_json(rehearsal_report(stage, run, seed, episodes, done))
    else:
        show_end(stage, run, episodes, done)
    if done is None:
        raise typer.Exit(_INTERRUPTED)

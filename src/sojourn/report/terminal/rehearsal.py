"""The begin and the end of a rehearsal."""

from collections.abc import Sequence
from math import isnan

from sojourn.history import Run
from sojourn.knowledge import Episode
from sojourn.rehearsal import Rehearsal, Stage
from sojourn.report.terminal.console import say
from sojourn.report.terminal.history import show_totals
from sojourn.report.text import clock, duration, processors_text
from sojourn.report.totals import Totals
from sojourn.report.turns import turns

__all__ = ["show_begin", "show_end"]


def show_begin(stage: Stage, run: Run) -> None:
    """Print what is rehearsed."""
    say(f"{stage.topology.name} · {run.policy}", "bold")
    say(
        f"{clock(stage.lasts_s)} of load; starts at {stage.rates.at(0.0):.4g} per s with "
        f"{processors_text(run.plan.allocation)}",
    )
    if note := stage.unmet:
        say(f"note        {note}")
    say()


def show_end(
    stage: Stage,
    run: Run,
    episodes: Sequence[Episode],
    rehearsal: Rehearsal | None,
) -> None:
    """Print the results; None as *rehearsal* if it was interrupted."""
    say()
    if rehearsal is None:
        at_s = episodes[-1].observation.at_s if episodes else 0.0
        reached = f"{clock(at_s)} of {clock(stage.lasts_s)}"
        say(f"interrupted at {reached}, so there is no score")
    else:
        score = rehearsal.score
        late = f", {score.unfinished} roots not completed" if score.unfinished else ""
        say(
            f"score       outside {stage.target} for {score.outside:.1%} of the time{late}; "
            f"{score.processor_hours:.2f} processor-hours",
        )
        if not isnan(score.worst_s):
            worst = f"{stage.target.statistic} {duration(score.worst_s)}"
            say(f"worst       {worst}, in windows of {stage.window_s:g} s")
    totals = Totals(run.topology, run.target)
    for turn in turns(episodes, stage.target.statistic):
        totals.count(turn)
    show_totals(totals)

"""Histories, rehearsals and comparisons on the terminal."""

from collections.abc import Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING

from rich.text import Text

from sojourn.decide.objective import Objective, percent
from sojourn.history import Run
from sojourn.knowledge import Episode
from sojourn.report.comparison import HIGHEST, Outcome, dominating, unfinished
from sojourn.report.terminal.console import print_table, say, table, wide_console
from sojourn.report.text import clock, duration, number, objective_text, processors_text
from sojourn.report.turns import Line, Totals, turns
from sojourn.service.status import ObjectiveStatus

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Rehearsal, Score, Stage

_STYLES = dict.fromkeys(("up", "down", "move", "nodes", "note"), "bold")


def show_run(run: Run, number: int, of: int, source: str = "") -> None:
    """Print the heading of a run; *source* is the history file, if the user named none."""
    say(f"{run.topology.name} · run {number} of {of}", "bold")
    say(f"{run.policy}; started {run.started_at:%Y-%m-%d %H:%M:%S %Z}")
    say(f"from {source}\n" if source else "")


def show_lines(shown: Sequence[Line], before: int) -> None:
    """Print a table of lines; *before* is the number of earlier lines that are left out."""
    if before:
        say(f"{before} earlier lines; --last 0 shows all")
    if not shown:
        return
    statistic = shown[-1].statistic
    right = ("turns", "per s", statistic, "expected")
    made = table("time", *right, "processors", "done", "why", right=right, wrapped=["why"])
    for line in shown:
        other = f"{line.statistic} " if line.statistic != statistic else ""
        cells = (
            clock(line.at_s),
            str(line.number) if line.number > 1 else "",
            number(line.arrivals_per_s) if isfinite(line.arrivals_per_s) else "",
            _known(line.measured_s, other),
            _known(line.expected_s),
            processors_text(line.allocation),
            line.done,
            line.reason,
        )
        made.add_row(*map(Text, cells), style=_STYLES.get(line.done))
    print_table(made)


def show_slices(totals: Totals) -> None:
    """Print how many slices kept the target, and the last ones that missed it."""
    for objective, slices in totals.slices.items():
        told = ObjectiveStatus(
            slice_s=objective.slice_s,
            kept=objective.kept,
            judged=slices.judged,
            missed=slices.missed,
            excused=slices.causes,
            level=slices.level,
        )
        say(f"kept        {objective.target} in {objective_text(told)}")
        head = "missed"
        for missed in slices.last_missed:
            since, until = clock(missed.slice.since_s), clock(missed.slice.until_s)
            say(f"{head:<11} {since} to {until}: {missed.found}")
            head = ""


def show_totals(totals: Totals) -> None:
    unusable = f", {totals.unusable} of them unusable" if totals.unusable else ""
    say(f"turns       {totals.turns} in {clock(totals.lasted_s)}{unusable}")
    kinds = f": {totals.kinds}" if totals.kinds else ""
    say(f"changes     {totals.changes}{kinds}")
    if totals.changes:
        again = f", {totals.replayed} records replayed" if totals.replayed else ""
        say(f"their cost  {totals.pause_s:.4g} s of pauses in all{again}")
    head = "target"
    for target, judged in totals.judged.items() if not totals.slices else ():
        above = f"above it in {judged.above} of {judged.measured} turns"
        say(f"{head:<11} {target}: {above}")
        head = ""
    if not totals.all_errors:
        say("expected    no prediction could be compared with a measurement")
        return
    right = ("times", "mean error", "absolute error")
    made = table("predicted", *right, right=right)
    for name, error in totals.all_errors.items():
        made.add_row(Text(name), str(error.number), f"{error.mean:+.1%}", f"{error.spread:.1%}")
    say()
    print_table(made)


def _known(seconds: float, before: str = "") -> str:
    return "" if isnan(seconds) else f"{before}{duration(seconds)}"


def show_begin(stage: "Stage", run: Run) -> None:
    """Print the heading: policy, load and the allocation to start with."""
    say(f"{stage.topology.name} · {run.policy}", "bold")
    say(
        f"{clock(stage.lasts_s)} of load; starts at {stage.rates.at(0.0):.4g} per s with "
        f"{processors_text(run.plan.allocation)}"
    )
    for note in stage.notes:
        say(f"note        {note}")
    say()


def show_end(
    stage: "Stage", run: Run, episodes: Sequence[Episode], rehearsal: "Rehearsal | None"
) -> None:
    """Print the score and the totals; *rehearsal* is None if it was interrupted."""
    say()
    if rehearsal is None:
        at_s = episodes[-1].observation.at_s if episodes else 0.0
        reached = f"{clock(at_s)} of {clock(stage.lasts_s)}"
        say(f"interrupted at {reached}, so there is no score")
    else:
        score = rehearsal.score
        late = f"; {score.unfinished} roots not completed" if score.unfinished else ""
        nodes = "" if score.node_hours is None else f", {score.node_hours:.2f} node-hours"
        say(f"kept        {_kept(stage.objective, score)}")
        if not isnan(score.worst_s):
            worst = f"{stage.target.statistic} {duration(score.worst_s)}"
            say(f"worst       {worst}, in a slice of {stage.objective.slice_s:g} s")
        say(f"used        {score.processor_hours:.2f} processor-hours{nodes}{late}")
    totals = Totals(run.topology, run.target)
    for turn in turns(episodes, stage.target.statistic):
        totals.count(turn)
    show_totals(totals)


def _kept(objective: Objective, score: "Score") -> str:
    """Return how many slices kept the target, and whether they are enough."""
    if isnan(score.kept):
        return f"unknown: too few roots to judge {objective}"
    slices = f"{score.slices} slice{'s' * (score.slices != 1)} of {objective.slice_s:g} s"
    reached = "reached" if score.kept >= objective.kept else "missed"
    return (
        f"{objective.target} in {score.kept:.1%} of {slices}; "
        f"the objective of {percent(objective.kept)} is {reached}"
    )


def show_comparison(stage: "Stage", outcomes: Sequence[Outcome]) -> None:
    seeds = len(outcomes[0].scores)
    title = (
        f"{stage.topology.name} · {stage.objective} · {clock(stage.lasts_s)} of load, "
        f"{seeds} seed{'s' * (seeds != 1)}"
    )
    say(title, "bold")
    heads = ["kept", "processor-hours", "changes", f"worst {stage.target.statistic}"]
    late = any(map(unfinished, outcomes))
    right = [*heads, *["unfinished"] * late]
    made = table("policy", "starts with", *right, right=right)
    for outcome in outcomes:
        cells = [*_cells(outcome), *[str(unfinished(outcome))] * late]
        made.add_row(*map(Text, cells))
    wide_console().print(made)
    say()
    say(f"front       {trade_off(outcomes)}")
    highest = stage.highest_per_s
    if any(each.policy == HIGHEST and each.starts_for == highest for each in outcomes):
        say(
            f"starts      {HIGHEST} with what the highest rate needs, others with what the "
            "first rate needs"
        )
    for note in stage.notes:
        say(f"note        {note}")


def trade_off(outcomes: Sequence[Outcome]) -> str:
    """Return the policies on the front, and for each other policy those that dominate it."""
    better = {outcome.policy: dominating(outcome, outcomes) for outcome in outcomes}
    front = ", ".join(name for name, others in better.items() if not others)
    dominated = ", ".join(
        f"{name} (by {', '.join(others)})" for name, others in better.items() if others
    )
    return f"{front}; dominated: {dominated or 'none'}"


def _cells(outcome: Outcome) -> list[str]:
    kept, hours = outcome.estimate("kept"), outcome.estimate("processor_hours")
    starts = processors_text(outcome.start.allocation)
    worst_s = outcome.worst_s
    return [
        outcome.policy,
        f"{starts} for {outcome.starts_for:.4g} per s",
        "" if isnan(kept.value) else f"{kept.value:.1%}{_half(kept.half_width, '.1%')}",
        f"{hours.value:.2f}{_half(hours.half_width, '.2f')}",
        f"{outcome.estimate('changes').value:.4g}",
        "" if isnan(worst_s) else duration(worst_s),
    ]


def _half(half: float, form: str) -> str:
    return "" if isnan(half) else f" ± {half:{form}}"

"""The results of `sojourn rehearse` and `sojourn compare`."""

from collections.abc import Sequence
from math import isnan

from rich.text import Text

from sojourn.history import Run
from sojourn.knowledge import Episode
from sojourn.report.comparison import HIGHEST, Outcome, dominating, unfinished
from sojourn.report.terminal.console import say, table, wide_console
from sojourn.report.terminal.history import show_totals
from sojourn.report.text import clock, duration, processors_text
from sojourn.report.turns import Totals, turns
from sojourn.simulate.rehearsal import Rehearsal, Stage

__all__ = ["show_begin", "show_comparison", "show_end", "trade_off"]


def show_begin(stage: Stage, run: Run) -> None:
    """Print the heading: policy, load and the allocation to start with."""
    say(f"{stage.topology.name} · {run.policy}", "bold")
    say(
        f"{clock(stage.lasts_s)} of load; starts at {stage.rates.at(0.0):.4g} per s with "
        f"{processors_text(run.plan.allocation)}"
    )
    if note := stage.unmet:
        say(f"note        {note}")
    say()


def show_end(
    stage: Stage, run: Run, episodes: Sequence[Episode], rehearsal: Rehearsal | None
) -> None:
    """Print the score and the totals; *rehearsal* is None if it was interrupted."""
    say()
    if rehearsal is None:
        at_s = episodes[-1].observation.at_s if episodes else 0.0
        reached = f"{clock(at_s)} of {clock(stage.lasts_s)}"
        say(f"interrupted at {reached}, so there is no score")
    else:
        score = rehearsal.score
        late = f", {score.unfinished} roots not completed" if score.unfinished else ""
        nodes = "" if score.node_hours is None else f", {score.node_hours:.2f} node-hours"
        say(
            f"score       outside {stage.target} for {score.outside:.1%} of the time{late}; "
            f"{score.processor_hours:.2f} processor-hours{nodes}"
        )
        if not isnan(score.worst_s):
            worst = f"{stage.target.statistic} {duration(score.worst_s)}"
            say(f"worst       {worst}, in windows of {stage.window_s:g} s")
    totals = Totals(run.topology, run.target)
    for turn in turns(episodes, stage.target.statistic):
        totals.count(turn)
    show_totals(totals)


def show_comparison(stage: Stage, outcomes: Sequence[Outcome]) -> None:
    seeds = len(outcomes[0].scores)
    title = (
        f"{stage.topology.name} · {stage.target} · {clock(stage.lasts_s)} of load, "
        f"{seeds} seed{'s' * (seeds != 1)}"
    )
    say(title, "bold")
    heads = ["outside", "processor-hours", "changes", f"worst {stage.target.statistic}"]
    late = any(map(unfinished, outcomes))
    right = [*heads, *["unfinished"] * late]
    made = table("policy", "starts with", *right, right=right)
    for outcome in outcomes:
        cells = [*_cells(outcome), *[str(unfinished(outcome))] * late]
        made.add_row(*map(Text, cells))
    wide_console().print(made)
    say()
    say(f"front       {trade_off(outcomes)}")
    if any(outcome.policy == HIGHEST for outcome in outcomes):
        say(
            f"starts      {HIGHEST} with what the highest rate needs, others with what the "
            "first rate needs"
        )
    if note := stage.unmet:
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
    outside, hours = outcome.estimate("outside"), outcome.estimate("processor_hours")
    starts = processors_text(outcome.start.allocation)
    worst_s = outcome.worst_s
    return [
        outcome.policy,
        f"{starts} for {outcome.starts_for:.4g} per s",
        f"{outside.value:.1%}{_half(outside.half_width, '.1%')}",
        f"{hours.value:.2f}{_half(hours.half_width, '.2f')}",
        f"{outcome.estimate('changes').value:.4g}",
        "" if isnan(worst_s) else duration(worst_s),
    ]


def _half(half: float, form: str) -> str:
    return "" if isnan(half) else f" ± {half:{form}}"

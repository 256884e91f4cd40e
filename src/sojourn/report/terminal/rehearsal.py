"""What a rehearsal came to: tables for people, and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from rich.console import Console

from sojourn.history import Run
from sojourn.knowledge import Episode
from sojourn.rehearsal import Rehearsal, Stage
from sojourn.report.json.history import history_report, nulled
from sojourn.report.terminal.history import clock, processors_text, show_tally
from sojourn.report.terminal.tables import duration
from sojourn.report.turns import Tally, turns

__all__ = ["rehearsal_report", "show_begin", "show_end"]


def show_begin(stage: Stage, run: Run, console: Console) -> None:
    """Print what is rehearsed."""
    _say(console, f"{stage.topology.name} · {run.policy}", "bold")
    _say(
        console,
        f"{clock(stage.lasts_s)} of load, from {stage.rates.at(0.0):.4g} per s and "
        f"{processors_text(run.plan.allocation)} on",
    )
    if note := stage.unmet:
        _say(console, f"note        {note}")
    _say(console)


def show_end(
    stage: Stage,
    run: Run,
    episodes: Sequence[Episode],
    rehearsal: Rehearsal | None,
    console: Console,
) -> None:
    """Print what it came to; without a rehearsal, what was reached when it was interrupted."""
    _say(console)
    if rehearsal is None:
        at_s = episodes[-1].observation.at_s if episodes else 0.0
        reached = f"{clock(at_s)} of {clock(stage.lasts_s)}"
        _say(console, f"interrupted at {reached}, so there is no score")
    else:
        score = rehearsal.score
        late = f", {score.unfinished} roots never done" if score.unfinished else ""
        _say(
            console,
            f"score       outside {stage.target} for {score.outside:.1%} of the time{late}; "
            f"{score.processor_hours:.2f} processor-hours",
        )
        if not isnan(score.worst_s):
            worst = f"{stage.target.statistic} {duration(score.worst_s)}"
            _say(console, f"worst       {worst}, in windows of {stage.window_s:g} s")
    tally = _tally(run, episodes)
    show_tally(console, tally)


def rehearsal_report(
    stage: Stage,
    run: Run,
    seed: int,
    episodes: Sequence[Episode],
    rehearsal: Rehearsal | None,
) -> dict[str, Any]:
    """Return the JSON of `rehearse`: that of a history, with the score in front."""
    tally = Tally(run.topology, run.target)
    passing = tally.counting(turns(episodes, stage.target.statistic))
    report = history_report(1, run, passing, tally)
    for of_a_file in ("run", "started_at"):
        del report[of_a_file]
    score = None if rehearsal is None else asdict(rehearsal.score)
    windows_s = [] if rehearsal is None else rehearsal.windows_s.tolist()
    told: dict[str, Any] = nulled(
        {
            "name": report.pop("name"),
            "seed": seed,
            "lasts_s": stage.lasts_s,
            "window_s": stage.window_s,
            "pause_s": stage.pause_s,
            "score": score,
            "windows_s": windows_s,
            **report,
        }
    )
    return told


def _tally(run: Run, episodes: Sequence[Episode]) -> Tally:
    tally = Tally(run.topology, run.target)
    statistic = run.target.statistic if run.target else "mean"
    for _ in tally.counting(turns(episodes, statistic)):
        pass
    return tally


def _say(console: Console, text: str = "", style: str | None = None) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=False, style=style)

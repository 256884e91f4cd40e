"""The JSON of `sojourn rehearse` and `sojourn compare`."""

from collections.abc import Sequence
from typing import Any

from sojourn.history import Run
from sojourn.knowledge import Episode
from sojourn.report.comparison import Outcome, dominating
from sojourn.report.json.history import history_report
from sojourn.report.json.output import nulled, picked
from sojourn.report.turns import Totals, turns
from sojourn.simulate.rehearsal import Rehearsal, Stage

__all__ = ["compare_report", "rehearsal_report"]

_ESTIMATED = ("outside", "processor_hours", "changes", "worst_s", "unfinished")


def rehearsal_report(
    stage: Stage, run: Run, seed: int, episodes: Sequence[Episode], rehearsal: Rehearsal | None
) -> dict[str, Any]:
    """Return the score of a rehearsal and its history; the score is null if interrupted."""
    totals = Totals(run.topology, run.target)
    passing = totals.counting(turns(episodes, stage.target.statistic))
    report = history_report(1, run, passing, totals)
    for of_a_file in ("run", "started_at"):
        del report[of_a_file]
    return {
        "name": report.pop("name"),
        "seed": seed,
        **picked(stage, "lasts_s", "window_s", "pause_s"),
        "score": rehearsal and rehearsal.score,
        "windows_s": [] if rehearsal is None else rehearsal.windows_s.tolist(),
        **report,
    }


def compare_report(stage: Stage, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the front, and the results of each policy; null is unknown."""
    return {
        "name": stage.topology.name,
        "target": stage.target,
        "processors": stage.most,
        **picked(stage, "lasts_s", "every_s", "window_s", "pause_s"),
        "note": stage.unmet,
        "front": [each.policy for each in outcomes if not dominating(each, outcomes)],
        "policies": {each.policy: _policy(each, outcomes) for each in outcomes},
    }


def _policy(outcome: Outcome, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    estimates = {field: outcome.estimate(field) for field in _ESTIMATED}
    return {
        "allocation": outcome.start.allocation,
        "starts_for_per_s": outcome.starts_for,
        **{
            name: {"mean": e.value, "half_width": e.half_width} for name, e in estimates.items()
        },
        "dominated_by": dominating(outcome, outcomes),
        "seeds": [
            {**nulled(score), "windows_s": windows_s.tolist()}
            for score, windows_s in zip(outcome.scores, outcome.windows_s, strict=True)
        ],
    }

"""The JSON of `sojourn compare`: each policy by seed, and over all seeds."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sojourn.rehearsal import Stage
from sojourn.report.comparison import Outcome, dominating

__all__ = ["compare_report"]

_ESTIMATED = ("outside", "processor_hours", "changes", "worst_s", "unfinished")


def compare_report(stage: Stage, outcomes: Sequence[Outcome], note: str) -> dict[str, Any]:
    """Return what `compare` prints; null is unknown."""
    target = stage.target
    return {
        "name": stage.topology.name,
        "target": {"statistic": target.statistic, "seconds": target.seconds},
        "processors": stage.most,
        "lasts_s": stage.lasts_s,
        "every_s": stage.every_s,
        "window_s": stage.window_s,
        "pause_s": stage.pause_s,
        "note": note,
        "front": [each.policy for each in outcomes if not dominating(each, outcomes)],
        "policies": {each.policy: _policy(each, outcomes) for each in outcomes},
    }


def _policy(outcome: Outcome, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    estimates = {field: outcome.estimate(field) for field in _ESTIMATED}
    return {
        "allocation": dict(outcome.start.allocation),
        "starts_for_per_s": outcome.starts_for,
        **{
            name: {"mean": e.value, "half_width": e.half_width} for name, e in estimates.items()
        },
        "dominated_by": dominating(outcome, outcomes),
        "seeds": [
            {**asdict(score), "windows_s": windows_s.tolist()}
            for score, windows_s in zip(outcome.scores, outcome.windows_s, strict=True)
        ],
    }

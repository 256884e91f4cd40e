"""The JSON of `sojourn rehearse`: the score, and the JSON of a history."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sojourn.history import Run
from sojourn.knowledge import Episode
from sojourn.rehearsal import Rehearsal, Stage
from sojourn.report.json.history import history_report
from sojourn.report.tally import Tally
from sojourn.report.turns import turns

__all__ = ["rehearsal_report"]


def rehearsal_report(
    stage: Stage,
    run: Run,
    seed: int,
    episodes: Sequence[Episode],
    rehearsal: Rehearsal | None,
) -> dict[str, Any]:
    """Return what `rehearse` prints."""
    tally = Tally(run.topology, run.target)
    passing = tally.counting(turns(episodes, stage.target.statistic))
    report = history_report(1, run, passing, tally)
    for of_a_file in ("run", "started_at"):
        del report[of_a_file]
    score = None if rehearsal is None else asdict(rehearsal.score)
    windows_s = [] if rehearsal is None else rehearsal.windows_s.tolist()
    return {
        "name": report.pop("name"),
        "seed": seed,
        "lasts_s": stage.lasts_s,
        "window_s": stage.window_s,
        "pause_s": stage.pause_s,
        "score": score,
        "windows_s": windows_s,
        **report,
    }

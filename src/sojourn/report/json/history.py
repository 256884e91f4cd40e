"""The JSON of `sojourn history`: all turns and totals, without the distributions."""

from collections.abc import Iterable
from typing import Any

from sojourn.history import Run
from sojourn.knowledge import PredictionError
from sojourn.model.network import PERCENTILES
from sojourn.report.json.output import picked
from sojourn.report.turns import Totals, Turn

__all__ = ["history_report"]

_OF_OPERATORS = (
    "wanted", "running", "backlog", "arrivals_per_s", "arrival_scv", "served_per_s",
    "service_s", "service_scv", "samples", "wait_s", "sojourn_s", "utilisation",
)  # fmt: skip
_OF_TOTALS = ("turns", "unusable", "lasted_s", "changes", "done", "pause_s", "replayed")


def history_report(
    number: int, run: Run, passing: Iterable[Turn], totals: Totals
) -> dict[str, Any]:
    """Return the JSON of a run; null is unknown or infinite."""
    every = [_turn(turn) for turn in passing]  # counts the turns, so it precedes the totals
    return {
        "name": run.topology.name,
        "run": number,
        "started_at": run.started_at.isoformat(),
        **picked(run, "every_s", "policy", "target"),
        "allocation": run.plan.allocation,
        "summary": _summary(totals),
        "turns": every,
    }


def _summary(totals: Totals) -> dict[str, Any]:
    return {
        **picked(totals, *_OF_TOTALS),
        "measured": sum(judged.measured for judged in totals.judged.values()),
        "above_target": sum(judged.above for judged in totals.judged.values()),
        "targets": [
            picked(target, "statistic", "seconds")
            | {"measured": judged.measured, "above_target": judged.above}
            for target, judged in totals.judged.items()
        ],
        "prediction_error": totals.error and _error(totals.error),
        "operators": {name: _error(error) for name, error in totals.errors.items()},
    }


def _error(error: PredictionError) -> dict[str, Any]:
    return picked(error, "number", "mean", "spread")


def _turn(turn: Turn) -> dict[str, Any]:
    seen, decision = turn.episode.observation, turn.episode.decision
    return {
        **picked(seen, "since_s", "at_s", "usable", "reason", "notes", "arrivals_per_s"),
        **picked(seen, "completed_per_s", "streams"),
        "roots": seen.completions.number,
        "mean_s": seen.mean_s,
        "percentiles_s": {name: seen.percentile_s(part) for name, part in PERCENTILES.items()},
        "operators": {
            name: picked(operator, *_OF_OPERATORS) for name, operator in seen.operators.items()
        },
        "statistic": turn.statistic,
        "measured_s": turn.measured_s,
        "expected": turn.expected,
        "decision": {
            **picked(decision, "at_s", "kind", "reason"),
            **picked(decision.wish, "goal", "wanted", "offered", "noise"),
            "before": decision.before.allocation,
            "after": decision.after.allocation,
            "expects": decision.expected,
            "nodes": decision.after.nodes,
        },
        "done": turn.done,
        **picked(turn.episode, "cost", "failure", "target"),
    }

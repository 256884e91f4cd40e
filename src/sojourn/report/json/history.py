"""The JSON of `sojourn history`: everything but the distributions."""

from collections.abc import Iterable
from typing import Any

from sojourn.decide.target import Target
from sojourn.engine import Cost
from sojourn.history import Run
from sojourn.knowledge import Decision, PredictionError
from sojourn.measure.observation import Observation, ObservedOperator
from sojourn.model.network import PERCENTILES
from sojourn.plan import Expected
from sojourn.report.tally import Tally
from sojourn.report.turns import Turn

__all__ = ["history_report"]


def history_report(
    number: int, run: Run, passing: Iterable[Turn], tally: Tally
) -> dict[str, Any]:
    """Return what `history` prints; null is unknown or infinite."""
    target = run.target
    every = [_turn(turn) for turn in passing]  # before the tally is read
    return {
        "name": run.topology.name,
        "run": number,
        "started_at": run.started_at.isoformat(),
        "every_s": run.every_s,
        "policy": run.policy,
        "target": target and _target(target),
        "allocation": run.plan.allocation,
        "summary": _summary(tally),
        "turns": every,
    }


def _summary(tally: Tally) -> dict[str, Any]:
    return {
        "turns": tally.turns,
        "unusable": tally.unusable,
        "lasted_s": tally.lasted_s,
        "changes": tally.changes,
        "done": tally.done,
        "pause_s": tally.pause_s,
        "replayed": tally.replayed,
        "measured": tally.measured,
        "above_target": tally.above,
        "targets": [
            {**_target(target), "measured": judged.measured, "above_target": judged.above}
            for target, judged in tally.judged.items()
        ],
        "prediction_error": _error(tally.error),
        "operators": {name: _error(error) for name, error in tally.errors.items()},
    }


def _target(target: Target) -> dict[str, Any]:
    return {"statistic": target.statistic, "seconds": target.seconds}


def _error(error: PredictionError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"number": error.number, "mean": error.mean, "spread": error.spread}


def _turn(turn: Turn) -> dict[str, Any]:
    episode = turn.episode
    return {
        **_observation(episode.observation),
        "statistic": turn.statistic,
        "measured_s": turn.measured_s,
        "expected": _expected(turn.expected),
        "decision": _decision(episode.decision),
        "done": turn.done,
        "cost": _cost(episode.cost),
        "failure": episode.failure,
        "target": episode.target and _target(episode.target),
    }


def _observation(seen: Observation) -> dict[str, Any]:
    return {
        "since_s": seen.since_s,
        "at_s": seen.at_s,
        "usable": seen.usable,
        "reason": seen.reason,
        "notes": seen.notes,
        "arrivals_per_s": seen.arrivals_per_s,
        "completed_per_s": seen.completed_per_s,
        "streams": seen.streams,
        "roots": seen.completions.number,
        "mean_s": seen.mean_s,
        "percentiles_s": {
            name: seen.percentile_s(ratio) for name, ratio in PERCENTILES.items()
        },
        "operators": {name: _operator(o) for name, o in seen.operators.items()},
    }


def _operator(seen: ObservedOperator) -> dict[str, Any]:
    fields = (
        "wanted", "running", "backlog", "arrivals_per_s", "arrival_scv", "served_per_s",
        "service_s", "service_scv", "samples", "wait_s", "sojourn_s", "utilisation",
    )  # fmt: skip
    return {name: getattr(seen, name) for name in fields}


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "at_s": decision.at_s,
        "kind": decision.kind,
        "reason": decision.reason,
        "goal": decision.goal,
        "before": decision.before.allocation,
        "after": decision.after.allocation,
        "wanted": decision.wanted,
        "expects": _expected(decision.expected),
        "offered": decision.offered,
        "noise": decision.noise,
    }


def _expected(expected: Expected | None) -> dict[str, Any] | None:
    if expected is None:
        return None
    return {
        "statistic": expected.statistic,
        "seconds": expected.seconds,
        "arrivals_per_s": expected.arrivals_per_s,
        "sojourns_s": expected.sojourns_s,
    }


def _cost(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {"pause_s": cost.pause_s, "replayed": cost.replayed, "changed": cost.changed}

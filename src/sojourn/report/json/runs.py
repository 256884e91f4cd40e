"""The JSON of `sojourn history`, `rehearse` and `compare`: turns, totals and scores."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sojourn.history import Run
from sojourn.knowledge import Episode, PredictionError
from sojourn.model.network import PERCENTILES
from sojourn.report.comparison import Outcome, dominating
from sojourn.report.json.output import nulled, picked
from sojourn.report.turns import Totals, Turn, turns

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Rehearsal, Stage

_OF_OPERATORS = (
    "wanted", "running", "backlog", "arrivals_per_s", "arrival_scv", "served_per_s",
    "service_s", "service_scv", "samples", "wait_s", "sojourn_s", "utilisation",
)  # fmt: skip


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
        **picked(totals, "turns", "unusable", "lasted_s", "changes", "done"),
        **picked(totals, "pause_s", "replayed"),
        "measured": sum(judged.measured for judged in totals.judged.values()),
        "above_target": sum(judged.above for judged in totals.judged.values()),
        "targets": [
            picked(target, "statistic", "seconds")
            | {"measured": judged.measured, "above_target": judged.above}
            for target, judged in totals.judged.items()
        ],
        "objectives": [
            {
                **picked(objective, "target", "slice_s", "kept"),
                **picked(slices, "judged", "missed", "level"),
                "excused": slices.causes,
            }
            for objective, slices in totals.slices.items()
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
        "slices": [
            {
                **picked(judged.slice, "since_s", "until_s", "born", "in_time"),
                **picked(judged, "kept", "cause", "level"),
            }
            for judged in turn.episode.judged
        ],
        **picked(turn.episode, "cost", "failure", "target"),
    }


_ESTIMATED = ("kept", "processor_hours", "changes", "worst_s", "unfinished")


def rehearsal_report(
    stage: "Stage",
    run: Run,
    seed: int,
    episodes: Sequence[Episode],
    rehearsal: "Rehearsal | None",
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
        **picked(stage, "lasts_s", "pause_s"),
        **picked(stage.objective, "slice_s", "kept"),
        "score": rehearsal and rehearsal.score,
        "slices_s": [] if rehearsal is None else rehearsal.slices_s.tolist(),
        **report,
    }


def compare_report(stage: "Stage", outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the front, and the results of each policy; null is unknown."""
    return {
        "name": stage.topology.name,
        "target": stage.target,
        "processors": stage.most,
        **picked(stage.objective, "slice_s", "kept"),
        **picked(stage, "lasts_s", "every_s", "pause_s"),
        "note": "; ".join(stage.notes),
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
            {**nulled(score), "slices_s": slices_s.tolist()}
            for score, slices_s in zip(outcome.scores, outcome.slices_s, strict=True)
        ],
    }

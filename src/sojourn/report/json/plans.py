"""The JSON of plans, predictions, explanations, simulations and calibrations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sojourn.decide.explain import Explanation
from sojourn.decide.solution import Solution
from sojourn.decide.target import Target
from sojourn.model.calibration import Calibration
from sojourn.model.network import OperatorFigures, Prediction

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.run import Simulated

__all__ = [
    "calibration_report",
    "explanation_report",
    "plan_report",
    "prediction_report",
    "simulated_report",
]


def prediction_report(prediction: Prediction) -> dict[str, Any]:
    """Return what `predict` prints."""
    report: dict[str, Any] = {
        "name": prediction.name,
        "model": prediction.model,
        "processors": prediction.processors,
        "allocation": dict(prediction.allocation),
        "mean_s": prediction.mean_s,
        "completion_mean_s": prediction.completion_mean_s,
        "std_s": prediction.std_s,
        "percentiles_s": dict(prediction.percentiles_s),
        "operators": _operators(prediction.operators),
    }
    if prediction.computing is not None:
        report["computing"] = {
            "demand_cores": prediction.computing.demand,
            "cores": prediction.computing.cores,
            "stretch": prediction.computing.stretch,
        }
    if prediction.calibration is not None:
        report["calibration"] = calibration_report(prediction.calibration)
        report["calibration"]["extrapolated"] = prediction.extrapolated
    return report


def simulated_report(simulated: "Simulated") -> dict[str, Any]:
    """Return what `simulate` prints: the fields of a prediction, and confidence intervals."""
    measured = {
        "mean_s": simulated.mean_s,
        "completion_mean_s": simulated.completion_mean_s,
        "std_s": simulated.std_s,
        **simulated.percentiles_s,
    }
    return {
        "name": simulated.name,
        "model": "simulation",
        "processors": sum(simulated.allocation.values()),
        "allocation": dict(simulated.allocation),
        **{name: measured[name].value for name in ("mean_s", "completion_mean_s", "std_s")},
        "percentiles_s": {p: value.value for p, value in simulated.percentiles_s.items()},
        "operators": _operators(simulated.operators),
        "seed": simulated.seed,
        "roots": simulated.roots,
        "visits": simulated.visits,
        "warm_up_s": simulated.warm_up_s,
        "simulated_s": simulated.simulated_s,
        "wall_s": simulated.wall_s,
        "half_widths_s": {name: value.half_width for name, value in measured.items()},
    }


def _operators(
    operators: Mapping[str, OperatorFigures],
) -> dict[str, Any]:
    return {
        name: {
            "arrivals_per_s": operator.arrivals_per_s,
            "utilisation": operator.utilisation,
            "sojourn_s": operator.sojourn_s,
            "visits": operator.visits,
            "processors": operator.processors,
        }
        for name, operator in operators.items()
    }


def plan_report(
    plan: Solution, prediction: Prediction, target: Target | None
) -> dict[str, Any]:
    """Return what `plan` prints."""
    report = prediction_report(prediction)
    report["target"] = (
        {"processors": plan.processors}
        if target is None
        else {"statistic": target.statistic, "seconds": target.seconds}
    )
    report["reason"] = plan.reason
    report["least_processors"] = plan.least
    if plan.nodes is not None:
        report["nodes"] = plan.nodes
    return report


def explanation_report(explanation: Explanation) -> dict[str, Any]:
    """Return what `explain` prints; null is what could not keep up."""
    report = prediction_report(explanation.prediction)
    for name, operator in explanation.operators.items():
        report["operators"][name] |= {
            "share_ratio": operator.share_ratio,
            "next_gain_s": operator.next_gain_s,
            "last_gain_s": operator.last_gain_s,
            "binds": operator.binds,
        }
    report["floor_s"] = explanation.floor_s
    report["headroom"] = {
        "factor": explanation.headroom.factor,
        "binds": explanation.headroom.binds,
    }
    report["neighbours"] = [
        {
            "allocation": dict(neighbour.allocation),
            "giver": neighbour.giver,
            "taker": neighbour.taker,
            "mean_s": neighbour.mean_s,
            "std_s": neighbour.std_s,
        }
        for neighbour in explanation.neighbours
    ]
    return report


def calibration_report(calibration: Calibration) -> dict[str, Any]:
    """Return what `calibrate` prints, and `--calibration` reads."""
    return {
        "format": 1,
        "coefficients": list(calibration.coefficients),
        "per_hop_s": calibration.per_hop_s,
        "low_s": calibration.low_s,
        "high_s": calibration.high_s,
    }

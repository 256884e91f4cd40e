"""The JSON of plans, predictions, explanations, simulations and calibrations."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sojourn.app.parts import Part
from sojourn.decide.explain import Explanation
from sojourn.decide.solution import Solution
from sojourn.decide.target import Target
from sojourn.model.calibration import Calibration
from sojourn.model.network import OperatorFigures, Prediction
from sojourn.report.json.output import picked

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.run import Simulated

_TIMES = ("mean_s", "completion_mean_s", "std_s")


def prediction_report(prediction: Prediction) -> dict[str, Any]:
    report = {
        **picked(prediction, "name", "model", "processors", "allocation", *_TIMES),
        "percentiles_s": prediction.percentiles_s,
        "operators": _operators(prediction.operators),
    }
    if (computing := prediction.computing) is not None:
        report["computing"] = {
            "demand_cores": computing.demand,
            **picked(computing, "cores", "stretch"),
        }
    if prediction.calibration is not None:
        report["calibration"] = calibration_report(prediction.calibration)
        report["calibration"]["extrapolated"] = prediction.extrapolated
    return report


def simulated_report(simulated: "Simulated") -> dict[str, Any]:
    """Return the JSON of `sojourn simulate`: a prediction's fields, and half-widths."""
    measured = picked(simulated, *_TIMES) | dict(simulated.percentiles_s)
    counts = ("seed", "roots", "visits", "warm_up_s", "simulated_s", "wall_s")
    return {
        "name": simulated.name,
        "model": "simulation",
        "processors": sum(simulated.allocation.values()),
        "allocation": simulated.allocation,
        **{name: measured[name].value for name in _TIMES},
        "percentiles_s": {p: value.value for p, value in simulated.percentiles_s.items()},
        "operators": _operators(simulated.operators),
        **picked(simulated, *counts),
        "half_widths_s": {name: value.half_width for name, value in measured.items()},
    }


def _operators(operators: Mapping[str, OperatorFigures]) -> dict[str, Any]:
    shown = ("arrivals_per_s", "utilisation", "sojourn_s", "visits", "processors")
    return {name: picked(operator, *shown) for name, operator in operators.items()}


def plan_report(
    plan: Solution, prediction: Prediction, target: Target | None
) -> dict[str, Any]:
    report = prediction_report(prediction) | {
        "target": target or {"processors": plan.processors},
        "reason": plan.reason,
        "least_processors": plan.least,
    }
    return report if plan.nodes is None else report | {"nodes": plan.nodes}


def explanation_report(
    explanation: Explanation, parts: Iterable[Part], plans: Mapping[str, str]
) -> dict[str, Any]:
    """Return the JSON of `sojourn explain`; times of what cannot keep up are null."""
    report = prediction_report(explanation.prediction)
    for name, operator in explanation.operators.items():
        report["operators"][name] |= picked(
            operator, "share_ratio", "next_gain_s", "last_gain_s", "binds"
        )
        if operator.key is not None:
            key = picked(operator.key, "name", "part", "busy", "most_per_s")
            report["operators"][name]["hottest_key"] = key
    moved = ("allocation", "giver", "taker", "mean_s", "std_s")
    return report | {
        **picked(explanation, "floor_s", "headroom"),
        "neighbours": [picked(neighbour, *moved) for neighbour in explanation.neighbours],
        "parts": [
            picked(part, "operators", "projections", "reads", "writes", "inner")
            for part in parts
        ],
        **({"queries": dict(plans)} if plans else {}),
    }


def calibration_report(calibration: Calibration) -> dict[str, Any]:
    """Return the JSON that `sojourn calibrate` prints and `--calibration` reads."""
    return {"format": 1, **picked(calibration, "coefficients", "per_hop_s", "low_s", "high_s")}

"""Why each operator has what it has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from sojourn.decide.headroom import Headroom, headroom
from sojourn.decide.neighbours import Neighbour, mean_change_s, neighbours
from sojourn.decide.target import Target
from sojourn.model.cores import stretched
from sojourn.model.network import Prediction, mean_floor_s, predict
from sojourn.topology import Operator, Topology

__all__ = ["Explanation", "OperatorExplanation", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorExplanation:
    """What an operator's processors do for the mean, and what sets their number.

    *next_gain_s* is how much one more would shorten the mean, *last_gain_s* how much one
    fewer would lengthen it: infinite where it could not keep up. Where cores are shared both
    may be below 0: one more makes all others slower.
    """

    share_ratio: float
    next_gain_s: float
    last_gain_s: float
    binds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A prediction with what lies behind it."""

    prediction: Prediction
    operators: Mapping[str, OperatorExplanation]
    floor_s: float
    headroom: Headroom
    neighbours: tuple[Neighbour, ...]


def explain(
    topology: Topology,
    allocation: Mapping[str, int],
    target: Target | None = None,
    *,
    model: str = "gigk",
) -> Explanation:
    """Return why *allocation* does what it does, and what the next processor would do."""
    prediction = predict(topology, allocation, model=model)
    shared = stretched(topology, allocation)
    change_s = mean_change_s(topology, allocation, model=model)
    return Explanation(
        prediction=prediction,
        operators={
            o.name: _operator(shared, o, prediction, change_s) for o in shared.operators
        },
        floor_s=mean_floor_s(topology),
        headroom=headroom(topology, allocation, target, model=model),
        neighbours=neighbours(topology, allocation, model=model),
    )


def _operator(
    topology: Topology,
    operator: Operator,
    prediction: Prediction,
    change_s: Callable[[Mapping[str, int]], float],
) -> OperatorExplanation:
    name, here = operator.name, prediction.operators[operator.name]
    keeping_up, total_s = topology.loads[name].min_processors, prediction.mean_s
    last_gain_s = inf if here.visits > 0 else 0.0
    if here.processors > keeping_up:
        last_gain_s = change_s({name: here.processors - 1})
    return OperatorExplanation(
        share_ratio=here.visits * here.sojourn_s / total_s if total_s > 0 else 0.0,
        next_gain_s=0.0 - change_s({name: here.processors + 1}),
        last_gain_s=last_gain_s,
        binds=_binds(operator, here.processors, keeping_up),
    )


def _binds(operator: Operator, processors: int, keeping_up: int) -> str:
    """Return what keeps the operator from having fewer processors, or more."""
    if operator.max_processors is not None and processors >= operator.max_processors:
        return "max_processors"
    if processors <= keeping_up:
        return "keeping up"
    if processors <= operator.min_processors:
        return "min_processors"
    return "gain"

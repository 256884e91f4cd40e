"""Why each operator has what it has."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from sojourn.decide.headroom import Headroom, headroom
from sojourn.decide.neighbours import Neighbour, neighbours
from sojourn.decide.target import Target
from sojourn.errors import UnstableStation
from sojourn.model.cores import stretched
from sojourn.model.network import Prediction, mean_floor_s, mean_s, predict, stations
from sojourn.model.station import Station
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
    models = stations(topology, model)
    shared = stretched(topology, allocation)
    operators = {
        operator.name: _operator(shared, operator, prediction, models[operator.name])
        for operator in topology.operators
    }
    if prediction.computing is not None:
        operators = {
            name: _sharing(topology, name, operator, prediction)
            for name, operator in operators.items()
        }
    return Explanation(
        prediction=prediction,
        operators=operators,
        floor_s=mean_floor_s(topology),
        headroom=headroom(topology, allocation, target, model=model),
        neighbours=neighbours(topology, allocation, model=model),
    )


def _operator(
    topology: Topology, operator: Operator, prediction: Prediction, model: Station
) -> OperatorExplanation:
    load, here = topology.loads[operator.name], prediction.operators[operator.name]
    more_s = model.wait_s(load, here.processors + 1)
    fewer_s = (
        model.wait_s(load, here.processors - 1)
        if here.processors > load.min_processors
        else inf
    )
    total_s = prediction.mean_s
    return OperatorExplanation(
        share_ratio=here.visits * here.sojourn_s / total_s if total_s > 0 else 0.0,
        next_gain_s=here.visits * (here.wait_s - more_s),
        last_gain_s=here.visits * (fewer_s - here.wait_s) if here.visits > 0 else 0.0,
        binds=_binds(operator, here.processors, load.min_processors),
    )


def _sharing(
    topology: Topology, name: str, operator: OperatorExplanation, prediction: Prediction
) -> OperatorExplanation:
    """Return the same, all operators being slower or faster for it where they share cores."""

    def change_s(processors: int) -> float:
        changed = {**prediction.allocation, name: processors}
        try:
            return mean_s(topology, changed, model=prediction.model) - prediction.mean_s
        except UnstableStation:
            return inf

    k, fewer = prediction.allocation[name], operator.last_gain_s
    return replace(
        operator,
        next_gain_s=-change_s(k + 1),
        last_gain_s=inf if fewer == inf else change_s(k - 1),
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

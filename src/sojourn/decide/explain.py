"""Explanations of an allocation: why each operator has its number of processors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from sojourn.decide.headroom import Headroom, headroom
from sojourn.decide.neighbours import Neighbour, mean_change_s, neighbours
from sojourn.decide.target import Target
from sojourn.model.cores import stretched
from sojourn.model.keyed import Keyed
from sojourn.model.network import Prediction, mean_floor_s, predict, stations
from sojourn.model.station import Station
from sojourn.topology import Operator, Topology
from sojourn.topology.load import StationLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorExplanation:
    """The effect of an operator's processors on the mean, and the reason for their number.

    On shared cores both gains may be negative: one more processor slows all others down.
    """

    share_ratio: float
    """The operator's share of the mean."""
    next_gain_s: float
    """Reduction of the mean by one more processor."""
    last_gain_s: float
    """Increase of the mean with one processor fewer; infinite if the rest cannot keep up."""
    binds: str
    """The constraint that determines the number of processors."""
    key: "KeyExplanation | None" = None
    """The hottest key; None if records are not partitioned by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplanation:
    """The hottest key of an operator, and the throughput that it limits."""

    name: str
    part: float
    """The key's share of all records."""
    busy: float
    """Utilisation of the one processor that serves this key."""
    most_per_s: float
    """Maximum throughput of the operator over all keys, with any number of processors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A prediction, and the figures that explain it."""

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
    """Return the prediction for *allocation* with the gain of each processor and its limits."""
    prediction = predict(topology, allocation, model=model)
    shared = stretched(topology, allocation)
    change_s = mean_change_s(topology, allocation, model=model)
    models = stations(shared, model)
    return Explanation(
        prediction=prediction,
        operators={
            o.name: _operator(shared, o, prediction, change_s, models[o.name])
            for o in shared.operators
        },
        floor_s=mean_floor_s(topology, model=model),
        headroom=headroom(topology, allocation, target, model=model),
        neighbours=neighbours(topology, allocation, model=model),
    )


def _operator(
    topology: Topology,
    operator: Operator,
    prediction: Prediction,
    change_s: Callable[[Mapping[str, int]], float],
    station: Station,
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
        binds="hottest key"
        if _waits_for_key(station, topology.loads[name], here.wait_s)
        else _binds(operator, here.processors, keeping_up),
        key=_key(operator, topology.loads[name]),
    )


def _key(operator: Operator, load: StationLoad) -> KeyExplanation | None:
    part, one_s = operator.hottest_key, load.service_s
    if part == 0:
        return None
    return KeyExplanation(
        name=operator.hottest_key_name,
        part=part,
        busy=part * load.erlangs,
        most_per_s=1 / (part * one_s) if one_s > 0 else inf,
    )


def _waits_for_key(station: Station, load: StationLoad, wait_s: float) -> bool:
    """Return whether records wait longer for their key than for a processor."""
    return isinstance(station, Keyed) and 2 * station.least_wait_s(load) > wait_s


def _binds(operator: Operator, processors: int, keeping_up: int) -> str:
    """Return the constraint that determines the number of processors."""
    if operator.max_processors is not None and processors >= operator.max_processors:
        return "max_processors"
    if processors <= keeping_up:
        return "keeping up"
    if processors <= operator.min_processors:
        return "min_processors"
    return "gain"

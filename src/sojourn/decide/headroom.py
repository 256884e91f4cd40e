"""Headroom: how far all arrivals can grow before the target is missed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from sojourn.decide.target import Target, reached_s
from sojourn.errors import BadNumber, HotKey, TooFewCores, UnstableStation
from sojourn.model.cores import computing, cores_headroom, slowed
from sojourn.model.network import operator_figures, predict, stations
from sojourn.topology import Operator, Topology

# Relative; loads are not measured more precisely.
_PRECISION = 1e-5
# Above this utilisation, the cores are the bottleneck.
_ALL_BUSY = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """The factor by which all arrivals can grow, and the limit that they reach then."""

    factor: float
    """Below 1 arrivals must decrease; 0 if no load meets the target."""
    binds: str
    """The limit that is reached at this factor."""


def headroom(
    topology: Topology,
    allocation: Mapping[str, int],
    target: Target | None = None,
    *,
    model: str = "gigk",
) -> Headroom:
    """Return how far all arrivals can grow with this *allocation*.

    Without a *target*, the limit is that an operator or the cores cannot keep up.
    """
    limits = {
        name: _carries(topology.operator[name], allocation[name]) / load.erlangs
        if load.erlangs > 0
        else inf
        for name, load in topology.loads.items()
    }
    first = min(limits, key=lambda name: limits[name])
    below = min(limits[first], cores_headroom(topology))
    if target is None and computing(topology) is None:
        return Headroom(factor=below, binds=_full(topology, first, allocation[first]))

    def holds(factor: float) -> bool:
        try:
            faster = topology.scaled(factor)
            if target is None:
                return bool(operator_figures(faster, allocation, stations(topology, model)))
            predicted = predict(faster, allocation, model=model)
        except (UnstableStation, HotKey, TooFewCores, BadNumber):
            return False  # at the limit itself, or the scaled topology is not valid
        return reached_s(predicted, target) <= target.seconds

    factor = _largest(holds, below=below)
    if target is not None:
        return Headroom(factor=factor, binds=f"{target} breaks")
    return Headroom(factor=factor, binds=_fullest(topology, allocation, factor))


def _carries(operator: Operator, processors: int) -> float:
    """Return how many processors can be busy, given that the hottest key uses only one."""
    return min(processors, 1 / operator.hottest_key if operator.hottest_key > 0 else inf)


def _fullest(topology: Topology, allocation: Mapping[str, int], factor: float) -> str:
    """Return the bottleneck beyond *factor*, with service times stretched by shared cores."""
    faster = topology.scaled(factor)
    shared = slowed(faster, allocation)
    full = {
        name: load.erlangs / _carries(topology.operator[name], allocation[name])
        for name, load in shared.loads.items()
    }
    name = max(full, key=lambda name: full[name])
    if factor >= cores_headroom(topology) * _ALL_BUSY:
        return "the cores cannot keep up"
    return _full(faster, name, allocation[name])


def _full(topology: Topology, name: str, processors: int) -> str:
    """Return the text for an operator that cannot keep up, with the key that limits it."""
    operator = topology.operator[name]
    if operator.hottest_key * processors <= 1:
        return f"{name} cannot keep up"
    key = f"the key {operator.hottest_key_name}" if operator.hottest_key_name else "one key"
    return f"{name} cannot keep up with {key}, whatever its processors"


def _largest(holds: Callable[[float], bool], *, below: float) -> float:
    """Return the largest factor *below* the limit for which *holds* is true, by bisection."""
    if below == inf:  # service times are 0, so any load can be served
        return inf if holds(1.0) else 0.0
    low, high = 0.0, below
    while high - low > _PRECISION * high and high > _PRECISION * below:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

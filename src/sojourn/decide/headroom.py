"""How far all arrivals can grow before the target breaks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from sojourn.decide.plan import Target, reached_s
from sojourn.errors import BadNumber, UnstableStation
from sojourn.model.network import predict
from sojourn.topology import Topology

__all__ = ["Headroom", "headroom"]

# A load is never known to more digits than this.
_PRECISION = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """All arrivals may become *factor* times as fast, until *binds*.

    A factor below 1 says how far they would have to fall; 0 that not even that would help.
    """

    factor: float
    binds: str


def headroom(
    topology: Topology,
    allocation: Mapping[str, int],
    target: Target | None = None,
    *,
    model: str = "gigk",
) -> Headroom:
    """Return how far all arrivals can grow with *allocation* as it is.

    Without a *target*, until an operator cannot keep up.
    """
    limits = {
        name: allocation[name] / load.erlangs if load.erlangs > 0 else inf
        for name, load in topology.loads.items()
    }
    first = min(limits, key=lambda name: limits[name])
    if target is None:
        return Headroom(factor=limits[first], binds=f"{first} cannot keep up")

    def holds(factor: float) -> bool:
        try:
            faster = topology.scaled(factor)
            predicted = predict(faster, allocation, model=model)
        except (UnstableStation, BadNumber):  # at the limit itself, or beyond all measure
            return False
        return reached_s(predicted, target) <= target.seconds

    return Headroom(factor=_largest(holds, below=limits[first]), binds=f"{target} breaks")


def _largest(holds: Callable[[float], bool], *, below: float) -> float:
    """Return the largest factor *below* the limit for which it still holds."""
    if below == inf:  # nothing takes any processor's time, whatever arrives
        return inf if holds(1.0) else 0.0
    low, high = 0.0, below
    while high - low > _PRECISION * high and high > _PRECISION * below:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

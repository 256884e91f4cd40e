"""Operators that share cores: computing takes longer, until the cores cannot keep up.

A processor that computes needs a core, one that waits does not. `service_s` is the time of a
record on a core of its own; here it becomes the time while others compute too. The result has
no `cores`, so that this is applied only once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from sojourn.errors import BadNumber, TooFewCores
from sojourn.sharing import settled_stretch, stretch
from sojourn.topology import Operator, Topology

__all__ = [
    "Computing",
    "at_stretch",
    "computing",
    "cores_headroom",
    "demand",
    "slowed",
    "stretched",
]

# Closer to full cores, computing would take a million times as long.
_ALL = 1 - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """The cores that records keep busy, all cores, and the factor on computing times.

    >>> print(Computing(demand=1.4, cores=2, stretch=1.96))
    computing uses 1.4 of 2 cores and takes 1.96 times as long as on idle cores
    """

    demand: float
    cores: float
    stretch: float

    def __str__(self) -> str:
        return (
            f"computing uses {self.demand:.3g} of {self.cores:.3g} cores and takes "
            f"{self.stretch:.3g} times as long as on idle cores"
        )


def demand(topology: Topology, rates: Mapping[str, float] | None = None) -> float:
    """Return the cores that records keep busy, Σ λᵢ · cpuᵢ, at these or other *rates*."""
    per_s = topology.rates if rates is None else rates
    return sum(per_s[o.name] * _cpu_s(o) / o.speed for o in topology.operators)


def computing(
    topology: Topology, allocation: Mapping[str, int] | None = None
) -> Computing | None:
    """Return how the processors of *allocation* share the cores; None if not known.

    It is not known if the topology has no `cores`, or no operator has a `cpu_s`. Without an
    allocation any number of records may compute at once.
    """
    if topology.cores is None or all(_cpu_s(o) == 0 for o in topology.operators):
        return None
    busy, cores = demand(topology), topology.cores
    if allocation is None:
        return Computing(demand=busy, cores=cores, stretch=stretch(busy, cores))
    operators = [(o, allocation[o.name]) for o in topology.operators if _cpu_s(o) > 0]

    def at_once(longer: float) -> float:
        """Return the processors that compute while all are busy; the others wait."""
        return sum(k * _cpu_s(o) * longer / _service_s(o, longer) for o, k in operators)

    return Computing(demand=busy, cores=cores, stretch=settled_stretch(busy, cores, at_once))


def cores_headroom(topology: Topology) -> float:
    """Return the factor on the arrivals at which all cores are busy."""
    found = computing(topology)
    return inf if found is None or found.demand == 0 else found.cores / found.demand


def stretched(topology: Topology, allocation: Mapping[str, int] | None = None) -> Topology:
    """Return *topology* with service times while *allocation* shares its cores.

    Without an allocation any number of records may compute at once. If cores or CPU times are
    not known, it is returned unchanged. Raise `TooFewCores` if the cores cannot keep up with
    any number of processors.

    >>> from sojourn.topology import Arrival
    >>> busy = Topology(
    ...     name="busy",
    ...     arrivals=(Arrival(name="in", per_s=10, into="match"),),
    ...     operators=(Operator(name="match", service_s=0.12, cpu_s=0.1),),
    ...     cores=2,
    ... )
    >>> stretched(busy).operators[0].service_s  # M/M/2 with one core busy takes 4/3
    0.1533
    """
    found = computing(topology, allocation)
    if found is None:
        return topology
    if found.demand >= _ALL * found.cores:
        raise TooFewCores(found.demand, found.cores)
    return at_stretch(topology, found.stretch)


def slowed(topology: Topology, allocation: Mapping[str, int]) -> Topology:
    """Return the same, also if the cores do not keep up: processors share them."""
    found = computing(topology, allocation)
    if found is None:
        return topology
    try:
        return at_stretch(topology, found.stretch)
    except BadNumber:  # out of range, and it could not keep up before either
        return at_stretch(topology, 1.0)


def at_stretch(topology: Topology, longer: float) -> Topology:
    """Return *topology* with computing *longer* times as long, and without cores."""
    operators = tuple(
        replace(o, service_s=_service_s(o, longer), cpu_s=None) for o in topology.operators
    )
    return replace(topology, operators=operators, cores=None)


def _cpu_s(operator: Operator) -> float:
    return operator.cpu_s or 0.0


def _service_s(operator: Operator, longer: float) -> float:
    return operator.service_s + (longer - 1) * _cpu_s(operator)

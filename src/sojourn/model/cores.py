"""When operators share cores: computing takes longer, and at some point nothing helps.

A processor that computes needs a core, one that waits does not. `service_s` is what a record
takes on a core of its own; here it becomes what it takes while others compute too. The result
says nothing of cores any more, so that however many layers ask, it happens once.
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

# Closer to all cores, a record would take a million times as long as alone.
_ALL = 1 - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """Cores that the records keep busy, those there are, and how much longer it takes.

    >>> print(Computing(demand=1.4, cores=2, stretch=1.96))
    computing takes 1.4 of 2 cores: its part of service times is 1.96 times as long
    """

    demand: float
    cores: float
    stretch: float

    def __str__(self) -> str:
        return (
            f"computing takes {self.demand:.3g} of {self.cores:.3g} cores: "
            f"its part of service times is {self.stretch:.3g} times as long"
        )


def demand(topology: Topology, rates: Mapping[str, float] | None = None) -> float:
    """Return the cores that the records keep busy, Σ λᵢ · cpuᵢ; or would at other *rates*."""
    per_s = topology.rates if rates is None else rates
    return sum(per_s[o.name] * _cpu_s(o) / o.speed for o in topology.operators)


def computing(
    topology: Topology, allocation: Mapping[str, int] | None = None
) -> Computing | None:
    """Return how far the processors of *allocation* share the cores; None if not known.

    That is where the topology has no `cores`, or none of its operators a `cpu_s`. Without an
    allocation nothing limits how many records compute at once.
    """
    if topology.cores is None or all(_cpu_s(o) == 0 for o in topology.operators):
        return None
    busy, cores = demand(topology), topology.cores
    if allocation is None:
        return Computing(demand=busy, cores=cores, stretch=stretch(busy, cores))
    operators = [(o, allocation[o.name]) for o in topology.operators if _cpu_s(o) > 0]

    def at_once(longer: float) -> float:
        """Return the processors that compute while all are busy, and the others wait."""
        return sum(k * _cpu_s(o) * longer / _service_s(o, longer) for o, k in operators)

    return Computing(demand=busy, cores=cores, stretch=settled_stretch(busy, cores, at_once))


def cores_headroom(topology: Topology) -> float:
    """Return how many times as much could arrive until all cores are busy."""
    found = computing(topology)
    return inf if found is None or found.demand == 0 else found.cores / found.demand


def stretched(topology: Topology, allocation: Mapping[str, int] | None = None) -> Topology:
    """Return *topology* with service times as they are while *allocation* shares its cores.

    Without an allocation nothing limits how many records compute at once. Where cores, or
    what computes, are not known, it stays as it is. Raise `TooFewCores` if the cores cannot
    keep up, however many processors there are.

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
    """Return the same also where cores do not keep up: processors share what there is."""
    found = computing(topology, allocation)
    if found is None:
        return topology
    try:
        return at_stretch(topology, found.stretch)
    except BadNumber:  # beyond all measure, and it could not keep up before either
        return at_stretch(topology, 1.0)


def at_stretch(topology: Topology, longer: float) -> Topology:
    """Return *topology* with computing *longer* times as long, and nothing of cores."""
    operators = tuple(
        replace(o, service_s=_service_s(o, longer), cpu_s=None) for o in topology.operators
    )
    return replace(topology, operators=operators, cores=None)


def _cpu_s(operator: Operator) -> float:
    return operator.cpu_s or 0.0


def _service_s(operator: Operator, longer: float) -> float:
    return operator.service_s + (longer - 1) * _cpu_s(operator)

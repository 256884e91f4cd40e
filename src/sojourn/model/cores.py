"""Shared cores: computing takes longer the more records compute, until cores are saturated.

A processor that computes needs a core, one that waits does not. `service_s` is the time of a
record on a core of its own; this module stretches it to the time on shared cores. The resulting
topology has no `cores`, so that the stretch is applied only once.

On a cluster, processors compete for the cores of their own node. They are placed round-robin
(`sojourn.decide.place.round_robin`), and all processors of an operator have one queue: those
on a busy node are slower, so they get fewer records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from sojourn.errors import BadNumber, TooFewCores
from sojourn.queueing.sharing import settled_stretch, stretch
from sojourn.topology import Operator, Topology
from sojourn.topology.node_cores import NodeCores, in_turn

# Maximum utilisation of cores; closer to 1, computing would take a million times as long.
_ALL = 1 - 1e-6
# The distribution of records over nodes has converged if an iteration changes no part by more.
_SETTLED, _ROUNDS = 1e-3, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """The effect of shared cores on computing times.

    >>> print(Computing(demand=1.4, cores=2, stretch=1.96))
    computing uses 1.4 of 2 cores and takes 1.96 times as long as on idle cores
    """

    demand: float
    """Cores that records keep busy."""
    cores: float
    """All cores."""
    stretch: float
    """Factor on computing times, averaged over all computing."""
    operators: Mapping[str, float] = field(default_factory=dict)
    """Factor of each operator that computes; they differ if some nodes are busier."""
    nodes: int = 1

    def __str__(self) -> str:
        on = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        return (
            f"computing uses {self.demand:.3g} of {self.cores:.3g} cores{on} and takes "
            f"{self.stretch:.3g} times as long as on idle cores"
        )


def demand(topology: Topology, rates: Mapping[str, float] | None = None) -> float:
    """Return the cores that records keep busy, Σ λᵢ · cpuᵢ, at these or other *rates*."""
    per_s = topology.rates if rates is None else rates
    return sum(per_s[o.name] * _cpu_s(o) / o.speed for o in topology.operators)


def all_cores(topology: Topology) -> float | None:
    """Return the cores of the maximum number of nodes; None if cores are not limited."""
    cores = topology.cores
    return cores.total if isinstance(cores, NodeCores) else cores


def computing(
    topology: Topology, allocation: Mapping[str, int] | None = None
) -> Computing | None:
    """Return the effect of sharing cores between the processors of *allocation*.

    It is None, not known, if the topology has no `cores`, or no operator has a `cpu_s`. Without
    an allocation any number of records may compute concurrently, on the maximum of nodes.
    """
    operators = [o for o in topology.operators if _cpu_s(o) > 0]
    if topology.cores is None or not operators:
        return None
    pools: tuple[float, ...]
    if isinstance(topology.cores, NodeCores):
        pools = topology.cores.holding(inf if allocation is None else sum(allocation.values()))
    else:
        pools = (topology.cores,)
    if allocation is None:
        stretches = dict.fromkeys((o.name for o in operators), _balanced(topology, pools))
    elif len(pools) == 1:
        counts = {o.name: [allocation[o.name]] for o in operators}
        whole = {o.name: [1.0] for o in operators}
        (longer,) = _node_stretches(topology, operators, pools, counts, whole)
        stretches = dict.fromkeys(whole, longer)
    else:
        stretches = _on_nodes(topology, operators, pools, allocation)
    busy = demand(topology)
    weights = {o.name: topology.rates[o.name] * _cpu_s(o) / o.speed for o in operators}
    same = len(set(stretches.values())) == 1 or busy == 0
    return Computing(
        demand=busy,
        cores=sum(pools),
        stretch=next(iter(stretches.values()))
        if same
        else sum(weights[name] * longer for name, longer in stretches.items()) / busy,
        operators=stretches,
        nodes=len(pools),
    )


def _balanced(topology: Topology, pools: Sequence[float]) -> float:
    """Return the mean stretch if records are distributed over nodes in proportion to cores.

    With very many processors that is the equilibrium: a busier node would serve fewer records.
    """
    busy, cores = demand(topology), sum(pools)
    return sum(part / cores * stretch(busy * part / cores, part) for part in pools)


def _on_nodes(
    topology: Topology,
    operators: Sequence[Operator],
    pools: Sequence[float],
    allocation: Mapping[str, int],
) -> dict[str, float]:
    """Return the stretch of each operator with processors placed round-robin on nodes.

    A fixed point: records shift to faster nodes, which thereby become slower.
    """
    first = {name: place for place, name in enumerate(allocation)}
    counts = {o.name: in_turn(allocation[o.name], first[o.name], len(pools)) for o in operators}
    parts = {name: [k / allocation[name] for k in on] for name, on in counts.items()}
    for _ in range(_ROUNDS):
        longer = _node_stretches(topology, operators, pools, counts, parts)
        moved = 0.0
        for o in operators:
            speeds = [
                k / _service_s(o, times)
                for k, times in zip(counts[o.name], longer, strict=True)
            ]
            now = [speed / sum(speeds) for speed in speeds]
            moved = max(moved, *(abs(a - b) for a, b in zip(now, parts[o.name], strict=True)))
            # damped by a half, because nodes that get fewer records become faster
            parts[o.name] = [(a + b) / 2 for a, b in zip(now, parts[o.name], strict=True)]
        if moved <= _SETTLED:
            break
    return {
        name: sum(part * times for part, times in zip(each, longer, strict=True))
        for name, each in parts.items()
    }


def _node_stretches(
    topology: Topology,
    operators: Sequence[Operator],
    pools: Sequence[float],
    counts: Mapping[str, Sequence[int]],
    parts: Mapping[str, Sequence[float]],
) -> list[float]:
    """Return the stretch on each node, given its processors and its *parts* of the records."""

    def on_node(node: int) -> float:
        busy = sum(
            topology.rates[o.name] * _cpu_s(o) / o.speed * parts[o.name][node]
            for o in operators
        )

        def at_once(longer: float) -> float:
            """Return the mean number of processors that compute while all are serving."""
            return sum(
                counts[o.name][node] * _cpu_s(o) * longer / _service_s(o, longer)
                for o in operators
            )

        return settled_stretch(busy, pools[node], at_once)

    return [on_node(node) for node in range(len(pools))]


def cores_headroom(topology: Topology) -> float:
    """Return the factor by which arrivals can grow until all cores are busy."""
    found = computing(topology)
    return inf if found is None or found.demand == 0 else found.cores / found.demand


def stretched(topology: Topology, allocation: Mapping[str, int] | None = None) -> Topology:
    """Return *topology* with the service times of *allocation* on shared cores.

    Without an allocation any number of records may compute concurrently. If cores or CPU times
    are not known, it is returned unchanged. Raise `TooFewCores` if the cores cannot keep up
    with any number of processors.

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
    return at_stretch(topology, found.operators)


def slowed(topology: Topology, allocation: Mapping[str, int]) -> Topology:
    """Return the same as `stretched`, even if the cores do not keep up.

    The stretch is then limited by the number of processors that share them.
    """
    found = computing(topology, allocation)
    if found is None:
        return topology
    try:
        return at_stretch(topology, found.operators)
    except BadNumber:  # out of range; such a load cannot keep up on idle cores either
        return at_stretch(topology, {})


def at_stretch(topology: Topology, longer: Mapping[str, float]) -> Topology:
    """Return *topology* with computing times multiplied by *longer*, and without cores.

    Operators that are left out have a factor of 1.
    """
    operators = tuple(
        replace(o, service_s=_service_s(o, longer.get(o.name, 1.0)), cpu_s=None)
        for o in topology.operators
    )
    return replace(topology, operators=operators, cores=None)


def _cpu_s(operator: Operator) -> float:
    return operator.cpu_s or 0.0


def _service_s(operator: Operator, longer: float) -> float:
    return operator.service_s + (longer - 1) * _cpu_s(operator)

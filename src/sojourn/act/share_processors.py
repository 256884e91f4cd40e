"""Too few processors, shared so that the bottleneck carries the most."""

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace

from sojourn.topology import Topology

__all__ = ["bounded", "ration"]


def ration(topology: Topology, needs: Mapping[str, float], processors: int) -> dict[str, int]:
    """Return *processors* shared so that the smallest part of any need that is met is largest.

    *needs* are fractions of processors. The slowest operator limits the application, so each
    processor goes there. Bounds of operators are kept; where their `min_processors` are more
    than there are, each operator starts from 1.

    >>> from sojourn.topology import Arrival, Operator
    >>> two = Topology(
    ...     name="two",
    ...     arrivals=(Arrival(name="in", per_s=10, into="a"),),
    ...     operators=(
    ...         Operator(name="a", service_s=0.6, emits={"b": 1}),
    ...         Operator(name="b", service_s=0.3),
    ...     ),
    ... )
    >>> ration(two, {"a": 6.0, "b": 3.0}, 6)
    {'a': 4, 'b': 2}
    """
    given = {operator.name: operator.min_processors for operator in topology.operators}
    if sum(given.values()) > processors:
        given = dict.fromkeys(given, 1)
    heap = [(given[name] / max(needs[name], 1e-9), name) for name in given]
    heapify(heap)
    left = processors - sum(given.values())
    while left > 0 and heap:
        _, name = heap[0]
        most = topology.operator[name].most_processors
        if most is not None and given[name] >= most:
            heappop(heap)
            continue
        given[name] += 1
        left -= 1
        heapreplace(heap, (given[name] / max(needs[name], 1e-9), name))
    return given


def bounded(
    topology: Topology, allocation: Mapping[str, float], most: int | None = None
) -> dict[str, int]:
    """Return *allocation* within the bounds of each operator, and of *most* in all."""
    within = {}
    for operator in topology.operators:
        wanted = max(int(allocation[operator.name]), operator.min_processors, 1)
        within[operator.name] = min(wanted, operator.most_processors or wanted)
    if most is None or sum(within.values()) <= most:
        return within
    return ration(topology, {name: float(number) for name, number in within.items()}, most)

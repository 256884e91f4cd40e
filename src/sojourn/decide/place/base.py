"""The Protocol of placers, and their request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from sojourn.decide.plan import Node, Placement
from sojourn.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """Processors to put on nodes, with the measurements that a placer may use."""

    allocation: Mapping[str, int]
    """Processors of each operator."""
    nodes: Sequence[Node]
    """The nodes, at least one, without those that are given back."""
    demands: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds per second of each operator whose CPU time is known."""
    flows: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Records per second from one operator to another, if above 0."""
    placement: Placement = field(default_factory=dict)
    """The current placement; some of its nodes may be gone."""

    @classmethod
    def of(
        cls,
        topology: Topology,
        allocation: Mapping[str, int],
        nodes: Sequence[Node],
        placement: Placement,
    ) -> Self:
        """Return the request with the demands and flows of a measured *topology*.

        Operators that are not in *allocation* are left out.
        """
        rates = topology.rates
        return cls(
            allocation=allocation,
            nodes=nodes,
            demands={
                o.name: rates[o.name] * o.cpu_s / o.speed
                for o in topology.operators
                if o.name in allocation and o.cpu_s is not None
            },
            flows={
                (name, target): rates[name] * mean
                for name, targets in topology.gains.items()
                for target, mean in targets.items()
                if mean > 0 and name in allocation and target in allocation
            },
            placement=placement,
        )


class Placer(Protocol):
    """Puts the processors of a request on its nodes. The loop calls it in every turn.

    - Every processor must be placed exactly once, on one of the nodes of the request.
    - Operators keep the order of the allocation.
    - The result depends only on the request: a placer has no state and draws nothing.
    - It is stable: given its own result as the current placement, and nothing else changed, it
      must return the same placement.
    - The model of shared cores (`sojourn.model.cores`) assumes that processors are placed in
      turn; for another placement its predictions are approximate.
    """

    def __call__(self, request: PlacementRequest, /) -> Placement:
        """Return the processors of each operator on each node."""

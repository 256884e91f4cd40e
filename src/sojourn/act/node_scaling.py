"""Node scaling: when to request nodes for the processors, and when to release one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from sojourn.decide.plan import Node, NodePlan
from sojourn.errors import BadInput
from sojourn.knowledge import Knowledge, NodeNeed

# Minimum time before a node is released, because getting one again is slow.
_CALM_S = 60.0
# Maximum part of the time in which nodes may be missing, as for pauses of changes.
_DISTURBED = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBounds:
    """Minimum and maximum number of nodes, and the processors on each.

    >>> bounds = NodeBounds(least=1, most=4, processors=6)
    >>> [bounds.holding(processors) for processors in (1, 6, 7, 100)]
    [1, 1, 2, 4]
    """

    least: int = 1
    most: int | None = None
    """If None, nodes are fixed: none is requested or released."""
    processors: int = 1
    """Processors on each node."""
    calm_s: float | None = None
    """Time for which fewer nodes must be enough before one is released; by default a minute, or
    longer if nodes take long to start."""

    def __post_init__(self) -> None:
        for what, number in (("nodes", self.least), ("processors per node", self.processors)):
            if number < 1:
                raise BadInput(f"{number} {what} are too few; write 1 or more")
        if self.calm_s is not None and not self.calm_s >= 0:
            raise BadInput(f"a node is released after {self.calm_s:g} s; write 0 or more")
        if self.most is not None and self.most < self.least:
            raise BadInput(
                f"at most {self.most} nodes is below the minimum of {self.least}; write "
                f"{self.least} or more"
            )

    def at_least(self, number: int) -> Self:
        """Return these bounds with the minimum raised to *number*."""
        return self if number <= self.least else replace(self, least=number)

    def holding(self, processors: int) -> int:
        """Return the fewest nodes for *processors*, within the bounds."""
        needed = max(self.least, -(-processors // self.processors))
        return needed if self.most is None else min(self.most, needed)


def node_plan(
    knowledge: Knowledge,
    processors: int,
    nodes: Sequence[Node],
    bounds: NodeBounds,
    at_s: float,
) -> tuple[NodePlan | None, NodeNeed]:
    """Return the node plan for *processors*, and since when more or fewer nodes are needed.

    More nodes are requested when the need has lasted for a twentieth of the time that a node
    takes to start (immediately, if that time is not known): a shorter need is not worth a node.
    A node is released when fewer were enough for `NodeCosts.away_s`, at least a minute, or for
    `calm_s` of the bounds; the next one only after the same time again. Nodes that read from
    sources are released last, because they must finish reading first.
    """
    if bounds.most is None:
        return None, NodeNeed()
    unchanged = _without_gone(knowledge.plan.nodes, nodes)
    before = unchanged or NodePlan(number=len(nodes))
    staying = before.staying(nodes)
    needed, need = bounds.holding(processors), knowledge.node_need
    if needed > before.number:
        since_s = at_s if need.more_since_s is None else need.more_since_s
        waits = at_s - since_s < _DISTURBED * (knowledge.node_costs.adding_s or 0.0)
        asked = replace(before, number=needed, reason=_requests(needed, processors, bounds))
        return unchanged if waits else asked, NodeNeed(more_since_s=since_s)
    if needed >= len(staying) or len(staying) < before.number:
        return unchanged, NodeNeed()
    since_s = at_s if need.fewer_since_s is None else need.fewer_since_s
    calm_s = bounds.calm_s
    if calm_s is None:
        calm_s = max(_CALM_S, knowledge.node_costs.away_s(_DISTURBED))
    if at_s - since_s < calm_s:
        return unchanged, NodeNeed(fewer_since_s=since_s)
    leaving = next((n for n in reversed(staying) if not n.reads), staying[-1]).name
    given_back = NodePlan(
        number=min(before.number, len(staying) - 1),
        given_back=(*before.given_back, leaving),
        reason=f"releases {leaving}: not needed for {at_s - since_s:.0f} s",
    )
    return given_back, NodeNeed(fewer_since_s=at_s)


def _without_gone(before: NodePlan | None, nodes: Sequence[Node]) -> NodePlan | None:
    """Return the plan without released nodes that have left."""
    names = {node.name for node in nodes}
    if before is None or names.issuperset(before.given_back):
        return before
    gone = [name for name in before.given_back if name not in names]
    left = tuple(name for name in before.given_back if name in names)
    return replace(before, given_back=left, reason=f"{', '.join(gone)} has left")


def _requests(needed: int, processors: int, bounds: NodeBounds) -> str:
    nodes = f"requests {needed} node{'s' * (needed != 1)}"
    if needed == bounds.least:
        return f"{nodes}, the minimum"
    limit = ", the maximum" if needed == bounds.most else ""
    return f"{nodes}{limit}: {processors} processors, {bounds.processors} on each"

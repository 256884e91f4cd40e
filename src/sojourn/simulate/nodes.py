"""Simulated nodes, which start after a delay and are removed immediately."""

from dataclasses import dataclass
from math import inf

from sojourn.decide.plan import Node, NodePlan
from sojourn.errors import BadWorkload
from sojourn.measure.node_costs import NodeCosts, NodeMoves, NodeTime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The number of nodes at the start, and the time to add others."""

    first: int = 1
    """Number of nodes at the start."""
    adding_s: float = 30.0
    """Time from the request for a node until it can be used."""

    def __post_init__(self) -> None:
        if self.first < 1:
            raise BadWorkload(f"{self.first} nodes at the start are too few; write 1 or more")
        if not 0 <= self.adding_s < inf:
            raise BadWorkload(f"adding_s is {self.adding_s}; write 0 or more")


class SimulatedNodes:
    """Nodes that plans request and release.

    They have no cores and no network of their own: all nodes share one queue for each operator.
    A released node is empty immediately, so it is removed immediately.

    >>> nodes = SimulatedNodes(NodeSettings(adding_s=30.0))
    >>> nodes.request(NodePlan(number=2), at_s=10.0)
    >>> nodes.next_s
    40.0
    >>> nodes.advance(40.0), [node.name for node in nodes.there]
    (True, ['node-0', 'node-1'])
    >>> nodes.request(NodePlan(number=1, given_back=("node-1",)), at_s=100.0)
    >>> nodes.advance(100.0), len(nodes.there), nodes.costs.adding_s
    (True, 1, 30.0)
    """

    def __init__(self, settings: NodeSettings) -> None:
        self._adding_s = settings.adding_s
        self.there = tuple(_node(number) for number in range(settings.first))
        self._named = settings.first
        self._coming_s: list[float] = []
        self._leaving: frozenset[str] = frozenset()
        self._leave_s = inf
        self._moves, self._time = NodeMoves(), NodeTime()
        self._saw(0.0)

    @property
    def next_s(self) -> float:
        """When the next node is added or removed; inf if none is."""
        return min([self._leave_s, *self._coming_s])

    @property
    def costs(self) -> NodeCosts:
        return self._moves.costs

    def node_s(self, at_s: float) -> float:
        """Return the accumulated time of all nodes until *at_s*, in node seconds."""
        return self._time.until(at_s)

    def request(self, plan: NodePlan | None, at_s: float) -> None:
        """Request and release nodes according to *plan*; None changes nothing."""
        if plan is None:
            return
        names = {node.name for node in self.there}
        for name in sorted(names.intersection(plan.given_back) - self._leaving):
            self._moves.released(at_s, name)
            self._leave_s = min(self._leave_s, at_s)
        self._leaving = frozenset(names.intersection(plan.given_back))
        more = plan.number - len(names - self._leaving) - len(self._coming_s)
        if more > 0:
            self._moves.asked(at_s, more)
            self._coming_s += [at_s + self._adding_s] * more

    def advance(self, until_s: float) -> bool:
        """Add and remove the nodes that are due by *until_s*; return whether any changed."""
        if self.next_s > until_s:
            return False
        come = [at_s for at_s in self._coming_s if at_s <= until_s]
        self._coming_s = [at_s for at_s in self._coming_s if at_s > until_s]
        new = tuple(_node(self._named + number) for number in range(len(come)))
        self._named += len(come)
        stay = tuple(node for node in self.there if node.name not in self._leaving)
        self.there, self._leaving, self._leave_s = (*stay, *new), frozenset(), inf
        self._saw(until_s)
        return True

    def _saw(self, at_s: float) -> None:
        names = [node.name for node in self.there]
        self._moves.saw(at_s, there=names, settled=names)
        self._time = self._time.saw(at_s, names)


def _node(number: int) -> Node:
    return Node(f"node-{number}")

"""When to ask for nodes and when to give one back: as many as the processors need."""

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.errors import BadInput
from sojourn.measure.node_costs import NodeCosts

__all__ = ["AskFor", "NodeBounds", "NodeScaling", "Release"]

# So long fewer nodes have to do: to get one again takes much longer than to keep it.
_CALM_S = 60.0
# The part of the time in which nodes may be missing, as for pauses of changes.
_DISTURBED = 0.05
_UNKNOWN = NodeCosts()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBounds:
    """At *least* and at *most* so many nodes, with so many *processors* on each.

    Without *most*, nodes are taken as they are: none is asked for or given back. One is given
    back when fewer have done for *calm_s*; without that, for a minute, or longer where nodes
    take long to come.

    >>> bounds = NodeBounds(least=1, most=4, processors=6)
    >>> [bounds.holding(processors) for processors in (1, 6, 7, 100)]
    [1, 1, 2, 4]
    """

    least: int = 1
    most: int | None = None
    processors: int = 1
    calm_s: float | None = None

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

    def holding(self, processors: int) -> int:
        """Return the fewest nodes that have so many processors, within the bounds."""
        needed = max(self.least, -(-processors // self.processors))
        return needed if self.most is None else min(self.most, needed)


@dataclass(frozen=True, slots=True)
class AskFor:
    """Ask for *number* nodes in all."""

    number: int


@dataclass(frozen=True, slots=True)
class Release:
    """Give a *node* back, once nothing is on it."""

    node: str


class NodeScaling:
    """Decides on the number of nodes within *bounds*.

    A node is given back when fewer have done for a minute, or for as long as it should be away
    (`NodeCosts.away_s`) if that is longer; or for *calm_s* of the bounds, if that is said. The
    next one goes after as much time again. More are asked for at once, or after the part
    *disturbed* of the time that a node takes to come: a need that is over by then is not worth
    one.

    >>> scaling = NodeScaling(NodeBounds(most=4, processors=5, calm_s=60))
    >>> scaling.step(0.0, 8, ["executor-0"], wanted=1)
    AskFor(number=2)
    >>> scaling.step(5.0, 8, ["executor-0"], wanted=2)  # it is on its way
    >>> both = ["executor-0", "executor-1"]
    >>> [scaling.step(at_s, 3, both, wanted=2) for at_s in (10.0, 69.0, 70.0)]
    [None, None, Release(node='executor-1')]
    """

    def __init__(self, bounds: NodeBounds, *, disturbed: float = _DISTURBED) -> None:
        self._bounds, self._disturbed = bounds, disturbed
        self._since_s: float | None = None
        self._short_s: float | None = None

    def step(
        self,
        now_s: float,
        processors: int,
        nodes: Sequence[str],
        *,
        wanted: int,
        costs: NodeCosts = _UNKNOWN,
    ) -> AskFor | Release | None:
        """Return what to do about nodes that are there, of which so many were *wanted*.

        *costs* are what moves of nodes took so far.
        """
        if self._bounds.most is None:
            return None
        needed = self._bounds.holding(processors)
        if needed > wanted:
            self._since_s = None
            self._short_s = now_s if self._short_s is None else self._short_s
            worth_s = self._disturbed * (costs.adding_s or 0.0)
            return AskFor(needed) if now_s - self._short_s >= worth_s else None
        self._short_s = None
        if needed >= len(nodes) or len(nodes) < wanted:
            self._since_s = None
            return None
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s < self._calm_s(costs):
            return None
        self._since_s = now_s
        return Release(nodes[-1])

    def _calm_s(self, costs: NodeCosts) -> float:
        told = self._bounds.calm_s
        return max(_CALM_S, costs.away_s(self._disturbed)) if told is None else told

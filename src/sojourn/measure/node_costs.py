"""The costs of nodes: the time to add and to remove one, and the bill."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite
from statistics import median

from sojourn.errors import BadInput
from sojourn.text import shown

# Only the last moves count: clusters differ, and each one varies from hour to hour.
_LAST_MOVES = 5
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCosts:
    """The time to add and to remove a node; None if not known yet."""

    adding_s: float | None = None
    """Time from the request for a node until its processors run."""
    removing_s: float | None = None
    """Time from the decision to release a node until it has left."""

    def away_s(self, disturbed: float) -> float:
        """Return the time that a node must be away to make its release worthwhile.

        While it is added again its processors are missing, at most for the part *disturbed* of
        that time. While it is removed it is paid for without being used.

        >>> NodeCosts(adding_s=4.8, removing_s=1.1).away_s(0.05)
        97.1
        """
        return (self.adding_s or 0.0) / disturbed + (self.removing_s or 0.0)


class NodeMoves:
    """Measures the times to add and to remove nodes; `costs` has medians of the last ones.

    >>> moves = NodeMoves()
    >>> moves.saw(0.0, there=["a"], settled=["a"])
    >>> moves.asked(10.0, 1)
    >>> moves.saw(13.0, there=["a", "b"], settled=["a"])
    >>> moves.saw(14.5, there=["a", "b"], settled=["a", "b"])
    >>> moves.released(60.0, "b")
    >>> moves.saw(61.0, there=["a"], settled=["a"])
    >>> moves.costs
    NodeCosts(adding_s=4.5, removing_s=1.0)
    """

    def __init__(self) -> None:
        self._known: frozenset[str] | None = None
        self._asked_s: deque[float] = deque()
        self._coming_s: dict[str, float] = {}
        self._leaving_s: dict[str, float] = {}
        self._adding_s: deque[float] = deque(maxlen=_LAST_MOVES)
        self._removing_s: deque[float] = deque(maxlen=_LAST_MOVES)
        self.costs = NodeCosts()  # replaced as a whole, so that any thread may read it

    def asked(self, at_s: float, more: int) -> None:
        self._asked_s.extend([at_s] * more)

    def released(self, at_s: float, node: str) -> None:
        self._leaving_s.setdefault(node, at_s)

    def saw(self, at_s: float, *, there: Collection[str], settled: Collection[str]) -> None:
        """Record the nodes that are *there*, and the *settled* ones, whose processors all run.

        A new node is attributed to the oldest request. A node without a request, for example
        the replacement of another one, is not measured.
        """
        new = frozenset(there) - (frozenset(there) if self._known is None else self._known)
        self._known = frozenset(there)
        for node in sorted(new):
            if self._asked_s:
                self._coming_s[node] = self._asked_s.popleft()
        for node in self._coming_s.keys() - there:
            del self._coming_s[node]
        for node in self._coming_s.keys() & set(settled):
            _learn(self._adding_s, at_s - self._coming_s.pop(node))
        for node in self._leaving_s.keys() - there:
            _learn(self._removing_s, at_s - self._leaving_s.pop(node))
        self.costs = NodeCosts(
            adding_s=median(self._adding_s) if self._adding_s else None,
            removing_s=median(self._removing_s) if self._removing_s else None,
        )


def _learn(times_s: deque[float], took_s: float) -> None:
    """Add a time, unless it is negative because the clock was set back."""
    if took_s >= 0:
        times_s.append(took_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTime:
    """The accumulated time of all nodes, in node seconds.

    Two nodes for a minute, and one of them for another:

    >>> begun = NodeTime().saw(100.0, ["a", "b"])
    >>> begun.saw(160.0, ["a"]).saw(220.0, ["a"]).total_s
    180.0
    """

    total_s: float = 0.0
    """Total until `at_s`."""
    at_s: float | None = None
    """Time of the last update."""
    nodes: frozenset[str] = frozenset()
    """The nodes since then."""

    def saw(self, at_s: float, nodes: Collection[str]) -> "NodeTime":
        """Return the time updated to *at_s*, from which on the nodes are *nodes*.

        The previous nodes count until *at_s*. If the clock was set back, this step counts as 0,
        and the next one starts at *at_s*.
        """
        lasted_s = 0.0 if self.at_s is None else max(0.0, at_s - self.at_s)
        return NodeTime(
            total_s=self.total_s + lasted_s * len(self.nodes),
            at_s=at_s,
            nodes=frozenset(nodes),
        )

    def until(self, at_s: float) -> float:
        """Return the total until *at_s*, assuming that the nodes have not changed."""
        return self.saw(at_s, self.nodes).total_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The node hours so far, and their cost in the currency of the price.

    >>> Bill.of(5400.0, 0.5).cost
    0.75
    """

    node_hours: float
    price_per_hour: float
    cost: float

    @classmethod
    def of(cls, node_s: float, price_per_hour: float) -> "Bill":
        """Return the bill for the time of all nodes in seconds."""
        hours = node_s / _HOUR_S
        return cls(node_hours=hours, price_per_hour=price_per_hour, cost=hours * price_per_hour)


def check_price(price_per_hour: float) -> None:
    if not (isfinite(price_per_hour) and price_per_hour >= 0):
        raise BadInput(
            f"a price of {shown(price_per_hour)} per hour is not possible; write 0 or more"
        )

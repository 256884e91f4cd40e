"""The costs of nodes: the time that adding and removing one takes, and the bill."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite
from statistics import median

from sojourn.errors import BadInput
from sojourn.text import shown

__all__ = ["Bill", "NodeCosts", "NodeMoves", "NodeTime", "check_price"]

# As for pauses of changes: clusters differ, and one cluster from hour to hour.
_LAST_MOVES = 5
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCosts:
    """How long nodes take to come and to go; None if none has.

    *adding_s* is from asking for a node until its processors run; *removing_s* from deciding to
    give one back until it is gone.
    """

    adding_s: float | None = None
    removing_s: float | None = None

    def away_s(self, disturbed: float) -> float:
        """Return how long a node should be away for giving it back to be worth it.

        Until it is back processors are missing, for no more than the part *disturbed* of the
        time; and until it is gone it is paid for and not used.

        >>> NodeCosts(adding_s=4.8, removing_s=1.1).away_s(0.05)
        97.1
        """
        return (self.adding_s or 0.0) / disturbed + (self.removing_s or 0.0)


class NodeMoves:
    """Learns what nodes cost from their coming and going: *costs* are medians of the last.

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
        """Take note that so many *more* nodes were asked for."""
        self._asked_s.extend([at_s] * more)

    def released(self, at_s: float, node: str) -> None:
        """Take note that a node is to be given back."""
        self._leaving_s.setdefault(node, at_s)

    def saw(self, at_s: float, *, there: Collection[str], settled: Collection[str]) -> None:
        """Take note of the nodes that are *there*, and of those whose processors all run.

        A node that comes is the one that was asked for first. One that nobody has asked for,
        such as one that replaces another, teaches nothing.
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
    """Add a time, unless the clock was set back."""
    if took_s >= 0:
        times_s.append(took_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTime:
    """The time that nodes were there, added up: *total_s* until *at_s*, and *nodes* since.

    Two nodes for a minute, and one of them for another:

    >>> begun = NodeTime().saw(100.0, ["a", "b"])
    >>> begun.saw(160.0, ["a"]).saw(220.0, ["a"]).total_s
    180.0
    """

    total_s: float = 0.0
    at_s: float | None = None
    nodes: frozenset[str] = frozenset()

    def saw(self, at_s: float, nodes: Collection[str]) -> "NodeTime":
        """Return it with the nodes that are there at *at_s*; those before were there till then.

        If the clock was set back, nothing is counted for that step, and the next one begins
        there.
        """
        lasted_s = 0.0 if self.at_s is None else max(0.0, at_s - self.at_s)
        return NodeTime(
            total_s=self.total_s + lasted_s * len(self.nodes),
            at_s=at_s,
            nodes=frozenset(nodes),
        )

    def until(self, at_s: float) -> float:
        """Return the total until *at_s*, if no node came or went since."""
        return self.saw(at_s, self.nodes).total_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The hours of all nodes so far, each at *price_per_hour*, and their *cost*.

    The cost is in the currency of the price.

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
    """Raise `BadInput` unless it can be the price of a node."""
    if not (isfinite(price_per_hour) and price_per_hour >= 0):
        raise BadInput(
            f"a price of {shown(price_per_hour)} per hour is not possible; write 0 or more"
        )

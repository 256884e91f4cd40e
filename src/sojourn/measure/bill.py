"""What nodes have cost: their number, integrated over time, and a price."""

from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite

from sojourn.errors import BadInput
from sojourn.topology.check import shown

__all__ = ["Bill", "NodeTime", "check_price"]

_HOUR_S = 3600.0


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

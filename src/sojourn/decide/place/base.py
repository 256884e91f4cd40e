"""What a placer has to hold."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sojourn.decide.plan import Node, Placement

__all__ = ["Placer"]


class Placer(Protocol):
    """Puts the processors of an allocation on nodes.

    - Every processor is placed exactly once, on one of the nodes that are given.
    - Operators are in the order of the allocation.
    - The same input has the same answer: it remembers nothing, and draws nothing.
    - The model of shared cores (`sojourn.model.cores`) assumes that processors are placed in
      turn; where another placer puts them, it only knows of them approximately.
    - It raises `BadAllocation` where there is no node, and says so.
    """

    def __call__(self, allocation: Mapping[str, int], nodes: Sequence[Node], /) -> Placement:
        """Return the processors of each operator on each node."""

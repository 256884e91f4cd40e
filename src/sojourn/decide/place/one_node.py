"""All on one machine, the first of the nodes."""

from collections.abc import Mapping, Sequence

from sojourn.decide.plan import Node, Placement
from sojourn.errors import BadAllocation

__all__ = ["place"]


def place(allocation: Mapping[str, int], nodes: Sequence[Node], /) -> Placement:
    """Return all processors on the first of *nodes*.

    >>> place({"split": 2, "count": 1}, [Node("node-1"), Node("node-2")])
    {'split': {'node-1': 2}, 'count': {'node-1': 1}}
    """
    if not nodes:
        raise BadAllocation(
            f"there is no node for {sum(allocation.values())} processors; start one first"
        )
    return {operator: {nodes[0].name: k} for operator, k in allocation.items()}

"""In turn over all nodes, as Storm does unless it is told otherwise."""

from collections.abc import Mapping, Sequence

from sojourn.errors import BadAllocation
from sojourn.plan import Node, Placement

__all__ = ["place"]


def place(allocation: Mapping[str, int], nodes: Sequence[Node], /) -> Placement:
    """Return the processors of each operator on *nodes* in turn.

    Each operator begins at another node, so those with one processor are not all on the first.
    Another number of processors of one operator moves none of the others.

    >>> place({"split": 3, "count": 1}, [Node("node-1"), Node("node-2")])
    {'split': {'node-1': 2, 'node-2': 1}, 'count': {'node-2': 1}}
    """
    if not nodes:
        raise BadAllocation(
            f"there is no node for {sum(allocation.values())} processors; start one first"
        )
    placement: dict[str, dict[str, int]] = {}
    for first, (operator, k) in enumerate(allocation.items()):
        on = placement[operator] = {}
        for number in range(k):
            node = nodes[(first + number) % len(nodes)].name
            on[node] = on.get(node, 0) + 1
    return placement

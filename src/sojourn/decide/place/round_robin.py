"""In turn over all nodes, as Storm does unless it is told otherwise."""

from collections.abc import Mapping, Sequence

from sojourn.decide.plan import Node, Placement
from sojourn.errors import BadAllocation
from sojourn.topology.node_cores import in_turn

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
    return {
        operator: {
            node.name: number
            for node, number in zip(nodes, in_turn(k, first, len(nodes)), strict=True)
            if number
        }
        for first, (operator, k) in enumerate(allocation.items())
    }

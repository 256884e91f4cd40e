"""In turn over all nodes, as Storm does by default."""

from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.plan import Placement
from sojourn.topology.node_cores import in_turn

__all__ = ["place"]


def place(request: PlacementRequest, /) -> Placement:
    """Return the processors of each operator on the nodes in turn.

    Each operator begins at another node, so those with one processor are not all on the first.
    Another number of processors of one operator moves none of the others.

    >>> from sojourn.decide.plan import Node
    >>> nodes = [Node("node-1"), Node("node-2")]
    >>> place(PlacementRequest(allocation={"split": 3, "count": 1}, nodes=nodes))
    {'split': {'node-1': 2, 'node-2': 1}, 'count': {'node-2': 1}}
    """
    nodes = request.nodes
    return {
        operator: {
            node.name: number
            for node, number in zip(nodes, in_turn(k, first, len(nodes)), strict=True)
            if number
        }
        for first, (operator, k) in enumerate(request.allocation.items())
    }

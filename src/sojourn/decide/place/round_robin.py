"""Round-robin over all nodes, the default of Storm."""

from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.plan import Placement
from sojourn.topology.node_cores import in_turn


def place(request: PlacementRequest, /) -> Placement:
    """Return the processors of each operator, round-robin over the nodes.

    Each operator starts at the next node, so operators with one processor do not all share the
    first. A change of one operator moves no processors of the others.

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

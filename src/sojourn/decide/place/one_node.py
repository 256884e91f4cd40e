"""All processors on one machine, the first of the nodes."""

from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.plan import Placement


def place(request: PlacementRequest, /) -> Placement:
    """Return all processors on the first node.

    >>> from sojourn.decide.plan import Node
    >>> nodes = [Node("node-1"), Node("node-2")]
    >>> place(PlacementRequest(allocation={"split": 2, "count": 1}, nodes=nodes))
    {'split': {'node-1': 2}, 'count': {'node-1': 1}}
    """
    first = request.nodes[0].name
    return {operator: {first: k} for operator, k in request.allocation.items()}

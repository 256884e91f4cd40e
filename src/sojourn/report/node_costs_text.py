"""What it costs to add and to remove a node, in words."""

from sojourn.measure.node_costs import NodeCosts
from sojourn.report.text import duration

__all__ = ["node_costs_text"]


def node_costs_text(costs: NodeCosts) -> str:
    """Return what it takes to add and to remove a node; empty if neither is known.

    >>> node_costs_text(NodeCosts(adding_s=4.8, removing_s=1.1))
    'adding a node takes 4.8 s, removing one 1.1 s'
    >>> node_costs_text(NodeCosts(removing_s=1.1))
    'removing a node takes 1.1 s'
    """
    known = [
        (verb, took_s)
        for verb, took_s in (("adding", costs.adding_s), ("removing", costs.removing_s))
        if took_s is not None
    ]
    if not known:
        return ""
    (verb, took_s), *others = known
    more = "".join(f", {other} one {duration(other_s)}" for other, other_s in others)
    return f"{verb} a node takes {duration(took_s)}{more}"

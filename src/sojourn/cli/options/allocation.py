"""Processors per operator, and how many there may be."""

from typing import Annotated

import typer

from sojourn.cli.options.group import Group
from sojourn.decide.nodes import Nodes
from sojourn.errors import BadAllocation, BadTarget
from sojourn.topology.check import shown

__all__ = [
    "AllocationOption",
    "MostOption",
    "NodesOptions",
    "ProcessorsOption",
    "RequiredAllocationOption",
    "read_allocation",
]

AllocationOption = Annotated[
    str | None,
    typer.Option(metavar="OP=K,…", help="Processors per operator: extract=10,match=11."),
]
RequiredAllocationOption = Annotated[
    str, typer.Option(metavar="OP=K,…", help="Processors per operator: extract=10,match=11.")
]
ProcessorsOption = Annotated[
    int | None,
    typer.Option(help="How many there are; beside a target, how many there may be at most."),
]
MostOption = Annotated[
    int | None, typer.Option(min=1, help="How many processors there may be at most.")
]


def read_allocation(text: str) -> dict[str, int]:
    """Return an allocation from `extract=10,match=11`.

    >>> read_allocation("extract=10, match=11")
    {'extract': 10, 'match': 11}
    """
    allocation: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if not name or not number.isascii() or not number.isdigit() or len(number) > 9:
            problem = f"{shown(part.strip())} is not an operator and its processors"
            raise BadAllocation(f"{problem}; write extract=10,match=11")
        if name in allocation:
            raise BadAllocation(f"{name} occurs twice in the allocation; write it once")
        allocation[name] = int(number)
    return allocation


def _read_nodes(
    *,
    slots_per_node: Annotated[
        int | None, typer.Option(help="Processors come in whole nodes of this many.")
    ] = None,
    reserved: Annotated[
        int, typer.Option(help="Slots of all nodes together that serve something else.")
    ] = 0,
) -> Nodes | None:
    """Return the shape of a node; None where processors come one by one."""
    if slots_per_node is None and reserved:
        raise BadTarget(f"--reserved {reserved} without --slots-per-node; give both")
    return None if slots_per_node is None else Nodes(slots=slots_per_node, reserved=reserved)


NodesOptions = Annotated[Nodes | None, Group(_read_nodes)]

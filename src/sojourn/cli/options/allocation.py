"""Options for the processors of operators, and their maximum."""

from typing import Annotated

from typer import Option

from sojourn.cli.options.group import Group
from sojourn.decide.solution import NodeSize
from sojourn.errors import BadAllocation, BadTarget
from sojourn.text import shown

__all__ = [
    "AllocationOption",
    "MostOption",
    "NodesOptions",
    "ProcessorsOption",
    "RequiredAllocationOption",
    "read_allocation",
]

_ALLOCATION = Option(metavar="OP=K,…", help="Processors per operator: extract=10,match=11.")
AllocationOption = Annotated[str | None, _ALLOCATION]
RequiredAllocationOption = Annotated[str, _ALLOCATION]
ProcessorsOption = Annotated[
    int | None, Option(help="Number of processors; with a target, the maximum.")
]
MostOption = Annotated[int | None, Option(min=1, help="Maximum number of processors.")]


def read_allocation(text: str) -> dict[str, int]:
    """Return an allocation, parsed from `extract=10,match=11`.

    >>> read_allocation("extract=10, match=11")
    {'extract': 10, 'match': 11}
    """
    allocation: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if not name or not number.isascii() or not number.isdigit() or len(number) > 9:
            problem = f"{shown(part.strip())} is not OPERATOR=PROCESSORS"
            raise BadAllocation(f"{problem}; write extract=10,match=11")
        if name in allocation:
            raise BadAllocation(f"{name} occurs twice in the allocation; write it once")
        allocation[name] = int(number)
    return allocation


def _read_nodes(
    *,
    slots_per_node: Annotated[
        int | None, Option(help="Processors per node; whole nodes are allocated.")
    ] = None,
    reserved: Annotated[int, Option(help="Slots reserved for other use, over all nodes.")] = 0,
) -> NodeSize | None:
    """Return the size of nodes; None if processors are allocated one by one."""
    if slots_per_node is None and reserved:
        raise BadTarget(f"--reserved {reserved} without --slots-per-node; give both")
    return None if slots_per_node is None else NodeSize(slots=slots_per_node, reserved=reserved)


NodesOptions = Annotated[NodeSize | None, Group(_read_nodes)]

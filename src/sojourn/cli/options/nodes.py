"""Simulated nodes: `--max-nodes` and the options that need it."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from sojourn.act.node_scaling import NodeBounds
from sojourn.cli.options.group import Group
from sojourn.errors import BadInput
from sojourn.measure.duration import read_duration_s

__all__ = ["SimulatedNodeOptions", "SimulatedNodes"]


@dataclass(frozen=True, slots=True)
class SimulatedNodes:
    """The bounds of the number of nodes, and the time to add one."""

    bounds: NodeBounds
    adding_s: float


def _read_nodes(
    *,
    min_nodes: Annotated[int, Option(min=1, help="The fewest nodes.")] = 1,
    max_nodes: Annotated[
        int | None,
        Option(
            min=1,
            help="Ask for nodes as processors need them, at most so many, and give them back "
            "(default: one machine).",
        ),
    ] = None,
    processors_per_node: Annotated[
        int | None, Option(min=1, help="Processors for a node; --max-nodes needs it.")
    ] = None,
    node_delay: Annotated[
        str, Option(metavar="TIME", help="How long a node takes to come.")
    ] = "30s",
) -> SimulatedNodes | None:
    """Return the nodes; None if their number is fixed."""
    if max_nodes is None:
        return None
    if processors_per_node is None:
        raise BadInput(
            f"--max-nodes {max_nodes} needs the size of a node; add --processors-per-node 5"
        )
    bounds = NodeBounds(least=min_nodes, most=max_nodes, processors=processors_per_node)
    return SimulatedNodes(bounds, read_duration_s(node_delay))


SimulatedNodeOptions = Annotated[SimulatedNodes | None, Group(_read_nodes)]

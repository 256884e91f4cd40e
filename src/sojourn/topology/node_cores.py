"""The cores of a cluster by node: processors compete only for the cores of their own node."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

from sojourn.errors import BadNumber, BadTopology
from sojourn.text import shown
from sojourn.topology import check


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCores:
    """The cores of the nodes of a cluster, including nodes that would be added.

    Added nodes are assumed to have the average number of cores.

    >>> cluster = NodeCores(nodes={"left": 4, "right": 2}, per_node=4, most=4)
    >>> cluster.holding(8), cluster.holding(9), cluster.total
    ((4, 2), (4, 2, 3.0), 12.0)
    """

    nodes: Mapping[str, float]
    """Cores by node, in the order in which nodes get processors."""
    per_node: int = 0
    """Processors per node, above which a node is added; 0 if none is added."""
    most: int = 0
    """The maximum number of nodes."""

    def __post_init__(self) -> None:
        if not isinstance(self.nodes, Mapping):
            problem = f"{shown(self.nodes)} does not map nodes to their cores"
            raise BadTopology("cores", problem, "write cores: {node-1: 4, node-2: 4}")
        for name, cores in self.nodes.items():
            check.number(f"cores.{name}", cores)
        if not self.nodes or 0 in self.nodes.values():
            problem = "there are none" if not self.nodes else "a node has none"
            raise BadNumber("cores", problem, "write more than 0, or leave it out")

    def holding(self, processors: float = inf) -> tuple[float, ...]:
        """Return the cores of each node when there are enough nodes for *processors*."""
        there = tuple(self.nodes.values())
        if self.per_node < 1 or self.most <= len(there):
            return there
        wanted = self.most if processors == inf else ceil(processors / self.per_node)
        more = min(self.most, wanted) - len(there)
        return (*there, *[sum(there) / len(there)] * more)

    @property
    def total(self) -> float:
        """The cores of the maximum number of nodes."""
        return sum(self.holding())


def in_turn(processors: int, first: int, nodes: int) -> list[int]:
    """Return the processors on each of *nodes* when placed round-robin, starting at *first*.

    >>> in_turn(5, 2, 3), in_turn(1, 4, 3)
    ([2, 1, 2], [0, 1, 0])
    """
    each, left = divmod(processors, nodes)
    return [each + ((node - first) % nodes < left) for node in range(nodes)]

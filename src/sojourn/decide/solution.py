"""What `assign` and `minimise` answer, and the nodes and cores it runs on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sojourn.decide.target import Target
from sojourn.errors import BadTarget
from sojourn.model.cores import Computing, at_stretch, computing, stretched
from sojourn.model.network import mean_s
from sojourn.topology import Topology

__all__ = ["Nodes", "Solution", "settled", "with_its_own"]

# After this many rounds, the plan assumes that all records may compute at once.
_ROUNDS = 20
# Stretches that differ by less are the same.
_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Processors per operator that solve `assign` or `minimise`, and why these.

    *least* is a number of processors below which the target is known to be out of reach:
    the solution's own number where it is proved the fewest. *computing* says by how much
    sharing cores lengthens service times, where these are known.
    """

    name: str
    model: str
    allocation: Mapping[str, int]
    mean_s: float
    reason: str
    least: int
    target: Target | None = None
    nodes: int | None = None
    computing: Computing | None = None

    @property
    def processors(self) -> int:
        """All processors."""
        return sum(self.allocation.values())


def settled(topology: Topology, solve: Callable[[Topology], Solution]) -> Solution:
    """Return the solution for service times as they are with its own processors.

    More processors let more records share the cores, so that each takes longer, for which a
    solution needs more processors. Going up from those that do not share at all it ends at
    the first that is enough for itself. Where cores are not known it is solved once.

    Raise `TooFewCores` if the cores cannot keep up, and whatever *solve* raises.
    """
    without_limit = stretched(topology)
    if without_limit is topology:
        return solve(topology)
    longer: dict[str, float] = {}
    for _ in range(_ROUNDS):
        made = solve(at_stretch(topology, longer))
        found = computing(topology, made.allocation)
        now = {} if found is None else found.operators
        if all(times <= longer.get(name, 1.0) * (1 + _SAME) for name, times in now.items()):
            break
        longer = {name: max(times, longer.get(name, 1.0)) for name, times in now.items()}
    else:
        made = solve(without_limit)
    return with_its_own(topology, made, made.allocation)


def with_its_own(
    topology: Topology, solution: Solution, allocation: Mapping[str, int]
) -> Solution:
    """Return *solution* with this *allocation*, and what its processors make of the cores."""
    return replace(
        solution,
        allocation=allocation,
        mean_s=mean_s(topology, allocation, model=solution.model),
        computing=computing(topology, allocation),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Processors that come by the machine.

    *reserved* of all the slots serve something else: sources, the controller itself.

    >>> machines = Nodes(slots=5, reserved=3)
    >>> machines.processors(4), machines.processors(5), machines.holding(18)
    (17, 22, 5)
    """

    slots: int
    reserved: int = 0

    def __post_init__(self) -> None:
        if self.slots < 1 or self.reserved < 0:
            raise BadTarget(
                f"{self.slots} slots per node with {self.reserved} reserved is not possible; "
                "write at least 1 slot, and 0 or more reserved"
            )

    def processors(self, nodes: int) -> int:
        """Return the processors that *nodes* machines have for the application."""
        return max(0, nodes * self.slots - self.reserved)

    def holding(self, processors: int) -> int:
        """Return the fewest machines that have *processors*."""
        return -(-(processors + self.reserved) // self.slots)

    def within(self, processors: int) -> int:
        """Return the most machines that have no more than *processors*."""
        return (processors + self.reserved) // self.slots

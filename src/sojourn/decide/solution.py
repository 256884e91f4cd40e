"""The result of `assign` and `minimise`, and its nodes and cores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sojourn.decide.target import Target
from sojourn.errors import BadTarget
from sojourn.model.cores import Computing, at_stretch, computing, stretched
from sojourn.model.network import mean_s
from sojourn.topology import Topology

# After this many rounds the plan assumes that any number of records may compute concurrently.
_ROUNDS = 20
# Stretches with a smaller relative difference are equal.
_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The allocation that solves `assign` or `minimise`, and the reason for it."""

    name: str
    model: str
    allocation: Mapping[str, int]
    mean_s: float
    reason: str
    least: int
    """Lower bound of the processors; the solution's own number if it is proved optimal."""
    target: Target | None = None
    nodes: int | None = None
    computing: Computing | None = None
    """The effect of shared cores on service times; None if cores are not known."""

    @property
    def processors(self) -> int:
        return sum(self.allocation.values())


def settled(topology: Topology, solve: Callable[[Topology], Solution]) -> Solution:
    """Return the solution for the service times that its own processors cause.

    With more processors more records share the cores, so each takes longer, and the solution
    needs more processors. The iteration starts from cores that are not shared and ends at the
    first solution that is sufficient for its own service times. If cores are not known,
    *solve* is called once.

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
    """Return *solution* with this *allocation*, and its own mean and use of cores."""
    return replace(
        solution,
        allocation=allocation,
        mean_s=mean_s(topology, allocation, model=solution.model),
        computing=computing(topology, allocation),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSize:
    """Machines with an equal number of processors.

    >>> machines = NodeSize(slots=5, reserved=3)
    >>> machines.processors(4), machines.processors(5), machines.holding(18)
    (17, 22, 5)
    """

    slots: int
    """Processors of one machine."""
    reserved: int = 0
    """Slots of all machines together that sources and the controller use."""

    def __post_init__(self) -> None:
        if self.slots < 1 or self.reserved < 0:
            raise BadTarget(
                f"{self.slots} slots per node with {self.reserved} reserved is not possible; "
                "write at least 1 slot, and 0 or more reserved"
            )

    def processors(self, nodes: int) -> int:
        """Return the processors that *nodes* machines provide to the application."""
        return max(0, nodes * self.slots - self.reserved)

    def holding(self, processors: int) -> int:
        """Return the fewest machines that have *processors*."""
        return -(-(processors + self.reserved) // self.slots)

    def within(self, processors: int) -> int:
        """Return the most machines that have no more than *processors*."""
        return (processors + self.reserved) // self.slots

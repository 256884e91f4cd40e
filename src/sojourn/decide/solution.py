"""What `assign` and `minimise` answer, and the cores it runs on: each depends on the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sojourn.decide.target import Target
from sojourn.model.cores import Computing, at_stretch, computing, stretched
from sojourn.model.network import mean_s
from sojourn.topology import Topology

__all__ = ["Solution", "settled", "with_its_own"]

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

"""A plan and the cores it runs on: each depends on the other."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sojourn.decide.plan import Plan
from sojourn.model.cores import at_stretch, computing, stretched
from sojourn.model.network import mean_s
from sojourn.topology import Topology

__all__ = ["settled", "with_its_own"]

# So many rounds at most; then it is planned as if nothing limited who computes at once.
_ROUNDS = 20
# Nothing takes longer for less than this part.
_SAME = 1e-9


def settled(topology: Topology, plan: Callable[[Topology], Plan]) -> Plan:
    """Return the plan for service times as they are with the plan's own processors.

    More processors let more records share the cores, so that each takes longer, for which a
    plan needs more processors. Going up from those that do not share at all it ends at the
    first plan that is enough for itself. Where cores are not known it is one plan.

    Raise `TooFewCores` if the cores cannot keep up, and whatever *plan* raises.
    """
    without_limit = stretched(topology)
    if without_limit is topology:
        return plan(topology)
    longer = 1.0
    for _ in range(_ROUNDS):
        made = plan(at_stretch(topology, longer))
        found = computing(topology, made.allocation)
        if found is None or found.stretch <= longer * (1 + _SAME):
            break
        longer = found.stretch
    else:
        made = plan(without_limit)
    return with_its_own(topology, made, made.allocation)


def with_its_own(topology: Topology, plan: Plan, allocation: Mapping[str, int]) -> Plan:
    """Return *plan* with this *allocation*, and what its processors make of the cores."""
    return replace(
        plan,
        allocation=allocation,
        mean_s=mean_s(topology, allocation, model=plan.model),
        computing=computing(topology, allocation),
    )

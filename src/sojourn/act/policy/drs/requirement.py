"""The allocation that the load requires, with a margin for errors of measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sojourn.act.best_effort_plan import aim
from sojourn.act.policy.drs.caution import Caution
from sojourn.act.policy.drs.correction import Correction
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.decide.target import Target
from sojourn.errors import BoundTooLow, CannotBeDone, TargetOutOfReach
from sojourn.model.cores import cores_headroom
from sojourn.topology import Topology

# The margin is limited to the load that keeps this part of the cores busy: beyond it, more
# processors do not help.
_MOST_OF_CORES = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The allocation that reaches a target at a load."""

    topology: Topology
    """The load with its margin."""
    target: Target | None
    """The corrected target, which the model must meet."""
    allocation: dict[str, int]
    note: str = ""
    """Text for the part of the goal that is missed; empty if it is reached."""
    error: CannotBeDone | None = None
    """The reason for which the goal is missed."""

    @property
    def processors(self) -> int:
        return sum(self.allocation.values())

    def met(self, now: Situation, allocation: Mapping[str, int]) -> bool:
        """Return whether *allocation* meets the target as well, according to the model."""
        if self.target is None:
            return True
        then = now.predicted(allocation, self.topology)
        return then is not None and then.seconds <= self.target.seconds


def requirement(
    now: Situation, corrected: Correction, caution: Caution, *, short: bool
) -> Requirement:
    """Return the allocation that the load requires.

    When *short*, processors are added for a small margin; otherwise they are kept for any load
    that is likely.
    """
    band = caution.given_for if short else caution.kept_for
    more = max(1 + band(now.uncertainty), caution.busiest(now.knowledge, now.topology))
    carried = max(1.0, _MOST_OF_CORES * cores_headroom(now.topology))
    topology = now.topology.scaled(min(more, carried))
    goal = replace(now.goal, target=corrected.target)
    asked, lowest_s = now.goal.target, corrected.lowest_s
    found = aim(topology, goal, now.needs, asked=asked, lowest_s=lowest_s)
    # the note would blame `max_processors`, but `Startable.bound` has set it, not the user
    ours = now.startable.running and (
        isinstance(found.error, BoundTooLow)
        or (isinstance(found.error, TargetOutOfReach) and found.error.needed is None)
    )
    return Requirement(
        topology=topology,
        target=corrected.target,
        allocation=found.allocation,
        note="" if ours else found.note,
        error=found.error,
    )

"""The allocation that the load requires, with margins for errors of model and measurement.

Models underestimate waits: they ignore networks, hiccups, and other processes on the machines.
The ratio of measured to expected waits makes the target for the model stricter in proportion.

If a latency below the floor of the model was measured, the floor is too high. The target for
the model is then relaxed by the difference between the floor and the lowest latency measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from statistics import fmean

from sojourn.act.best_effort_plan import aim
from sojourn.act.latency import at_least_s
from sojourn.act.policy.drs.caution import Caution
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.decide.plan import Expected
from sojourn.decide.target import Target
from sojourn.errors import BoundTooLow, CannotBeDone, TargetOutOfReach
from sojourn.knowledge import Knowledge
from sojourn.measure.observation import Observation
from sojourn.model.cores import cores_headroom
from sojourn.topology import Topology

# The most outcomes that are averaged, and the largest correction: a larger error is not
# explained by waits.
_OUTCOMES, _MOST_TIMES = 24, 4.0
# Predicted waits count as at least this part of the wait that the target permits; a ratio to a
# shorter one would mean nothing.
_LEAST_WAIT = 0.1
# The shortest wait to plan for, as a part of the floor: less is not worth its processors.
_LEAST_PART = 0.02
# The load is as planned if it differs by less than this part, or this many standard errors.
_SAME, _CHANCE = 0.1, 3.0
# The margin is limited to the load that keeps this part of the cores busy: beyond it, more
# processors do not help.
_MOST_OF_CORES = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A correction of the model by means of its target."""

    target: Target | None
    """The target that the model must meet."""
    times: float = 1.0
    """Actual waits over predicted waits."""
    lowest_s: float = inf
    """The lowest latency measured, if it is below the floor of the model."""


def correction(now: Situation, *, surely: float) -> Correction:
    """Return the correction, *surely* standard errors below its most likely value."""
    target = now.goal.target
    if target is None or now.floor_s == inf:
        return Correction(target=target)
    if now.lowest_s < now.floor_s:
        later = replace(target, seconds=target.seconds + now.floor_s - now.lowest_s)
        return Correction(target=later, lowest_s=now.lowest_s)
    times = underestimated(now.knowledge, target, now.floor_s, surely=surely)
    return Correction(target=stricter(target, now.floor_s, times), times=times)


def stricter(target: Target, floor: float, times: float) -> Target:
    """Return the target for a model, given that actual waits are *times* as long.

    >>> stricter(Target("mean", 3.0), 1.0, 4.0)
    Target(statistic='mean', seconds=1.5)
    """
    wait_s = max((target.seconds - floor) / times, _LEAST_PART * floor)
    return replace(target, seconds=floor + wait_s)


def underestimated(
    knowledge: Knowledge, target: Target, floor: float, *, surely: float
) -> float:
    """Return measured waits over expected waits, at least 1.

    *surely* standard errors are subtracted from measured waits: 0 for the most likely value, 2
    for a safe lower bound.
    """
    outcomes = [
        (expected.seconds, after)
        for expected, after in knowledge.outcomes(_OUTCOMES)
        if expected.statistic == target.statistic and _as_planned(expected, after)
    ]
    if target.seconds <= floor or not outcomes:
        return 1.0
    least_s = _LEAST_WAIT * (target.seconds - floor)
    expected_s = fmean(seconds for seconds, _ in outcomes)
    measured_s = at_least_s([after for _, after in outcomes], target.statistic, surely)
    return min(_MOST_TIMES, max(1.0, (measured_s - floor) / max(expected_s - floor, least_s)))


def _as_planned(expected: Expected, after: Observation) -> bool:
    """Return whether the load was the one that the prediction assumed."""
    chance = _CHANCE / sqrt(max(1.0, after.arrivals_per_s * after.lasted_s))
    return abs(after.arrivals_per_s / expected.arrivals_per_s - 1) <= max(_SAME, chance)


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


def _planned_load(now: Situation, caution: Caution, *, short: bool) -> float:
    """Return the load to plan for, as a multiple of the load."""
    if now.level is not None:
        return (1 + now.level) * (1.0 if short else 1 + caution.sigmas * now.uncertainty)
    band = caution.given_for if short else caution.kept_for
    return max(1 + band(now.uncertainty), caution.busiest(now.knowledge, now.topology))


def requirement(
    now: Situation, corrected: Correction, caution: Caution, *, short: bool
) -> Requirement:
    """Return the allocation that the load requires.

    When *short*, processors are added for a small margin; otherwise they are kept for any load
    that is likely.
    """
    more = _planned_load(now, caution, short=short)
    carried = max(1.0, _MOST_OF_CORES * cores_headroom(now.topology))
    topology = now.topology.scaled(min(more, carried))
    goal = replace(now.goal, target=corrected.target)
    asked, lowest_s = now.goal.target, corrected.lowest_s
    needs = dict(now.needs)
    for name, load in now.topology.loads.items() if more < 1 else ():
        # a low level must not take those that the load itself needs
        needs[name] = max(needs.get(name, 1), load.min_processors)
    found = aim(topology, goal, needs, asked=asked, lowest_s=lowest_s)
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

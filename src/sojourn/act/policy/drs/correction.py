"""The recent error of the model, and the target that compensates for it.

Models underestimate waits: they ignore networks, hiccups, and other processes on the machines.
The ratio of measured to expected waits makes the target for the model stricter in proportion.

If a latency below the floor of the model was measured, the floor is too high. The target for
the model is then relaxed by the difference between the floor and the lowest latency measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from statistics import fmean

from sojourn.act.evidence import lowest_s
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.decide.plan import Expected
from sojourn.decide.target import Target
from sojourn.knowledge import Knowledge
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.model.network import PERCENTILES

SURELY = 2.0
"""Standard errors between the most likely value and a safe bound."""

# The most outcomes that are averaged, the fewest roots in them, and the largest correction: a
# larger error is not explained by waits.
_OUTCOMES, _LEAST_ROOTS, _MOST_TIMES = 24, 200, 4.0
# Predicted waits count as at least this part of the wait that the target permits; a ratio to a
# shorter one would mean nothing.
_LEAST_WAIT = 0.1
# The shortest wait to plan for, as a part of the floor: less is not worth its processors.
_LEAST_PART = 0.02
# The load is as planned if it differs by less than this part, or this many standard errors.
_SAME, _CHANCE = 0.1, 3.0


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
    lowest = lowest_s(now.knowledge.observations, target.statistic)
    if lowest < now.floor_s:
        later = replace(target, seconds=target.seconds + now.floor_s - lowest)
        return Correction(target=later, lowest_s=lowest)
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
        for expected, after in knowledge.outcomes()[-_OUTCOMES:]
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


def at_least_s(outcomes: Sequence[Observation], statistic: str, surely: float) -> float:
    """Return the measured statistic minus *surely* standard errors; 0 for too few roots.

    Latencies of successive roots are correlated, so errors are assumed to be twice as large.
    """
    completions = sum((o.completions for o in outcomes), Sketch.empty())
    sums = sum((o.sums for o in outcomes), Sketch.empty())
    roots = completions.number
    if roots < _LEAST_ROOTS:
        return 0.0
    if statistic == "mean":
        return sums.mean_s - 2 * surely * sums.std_s / sqrt(roots)
    ratio = PERCENTILES[statistic]
    chance = 2 * surely * sqrt(ratio * (1 - ratio) / roots)
    return completions.percentile_s(max(0.0, ratio - chance))

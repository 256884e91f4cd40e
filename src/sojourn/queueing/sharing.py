"""Shared cores: processor sharing stretches computing if records outnumber cores.

Records that compute arrive at random and share c cores like the customers of M/M/c, but all are
served concurrently instead of in order. This does not change the number of records in the
system, so by Little's law their mean time is that of M/M/c as well.
"""

from collections.abc import Callable
from math import floor, inf

from sojourn.queueing.erlang import delay_probability

# A ratio closer to 1 than this counts as 1 in a geometric sum.
_NEARLY_FULL = 1e-12
# The iteration ends when the relative change is below this, or after this many rounds.
_SETTLED, _ROUNDS = 1e-9, 200


def stretch(demand: float, cores: float, processors: float = inf) -> float:
    """Return the factor by which shared cores lengthen computing, 1 or more.

    The records keep *demand* cores busy. If any number of records may compute concurrently, the
    factor is the sojourn over the service of M/M/c, 1 + C/(c - a), and infinite if *demand*
    reaches *cores*. *processors*, perhaps fractional, limit the number that compute
    concurrently; the wait for a processor is not included here. The factor is then at most
    *processors* over *cores*.

    For a fractional number of cores the probability that all are busy is interpolated.

    >>> stretch(1.0, 2), stretch(1.6, 2), stretch(1.6, 2, processors=3), stretch(1.6, 2, 2)
    (1.3333, 2.7778, 1.3556, 1.0)
    >>> stretch(2.5, 2), stretch(2.5, 2, processors=5)
    (inf, 2.5)
    """
    beyond = processors - cores
    if beyond <= 0 or demand == 0:
        return 1.0
    busy = min(1.0, demand / cores)
    return 1 + _all_busy(demand, cores) / cores * _powers(busy, beyond)


def settled_stretch(demand: float, cores: float, computing: Callable[[float], float]) -> float:
    """Return the stretch that is consistent with the number of processors that compute.

    *computing* maps a stretch to the maximum number that compute concurrently: the longer
    computing takes, the smaller the part of its time that a processor waits for other things.

    >>> settled_stretch(1.6, 2, lambda longer: 24 * longer / (longer + 5))  # a sixth computes
    2.2465
    """
    found = 1.0
    for _ in range(_ROUNDS):
        before, found = found, stretch(demand, cores, computing(found))
        if found - before <= _SETTLED * before:
            break
    return found


def _all_busy(demand: float, cores: float) -> float:
    if demand >= cores:
        return 1.0
    whole = floor(cores)
    fewer = 1.0 if demand >= whole else delay_probability(demand, whole)
    if whole == cores:
        return fewer
    return fewer + (cores - whole) * (delay_probability(demand, whole + 1) - fewer)


def _powers(ratio: float, number: float) -> float:
    """Return the geometric sum 1 + r + r² + … of *number* terms; the last may be a fraction."""
    if ratio > 1 - _NEARLY_FULL:
        return number
    if number == inf:
        return 1 / (1 - ratio)
    whole = floor(number)
    return (1 - ratio**whole) / (1 - ratio) + (number - whole) * ratio**whole

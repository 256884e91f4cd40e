"""Cores shared by more records than there are: how much longer computing takes.

Records that compute come at random, and share c cores as the customers of M/M/c share its
servers, but all at once instead of in turn. That changes who is late, not how many are there:
their number is that of M/M/c, and by Little's law so is the mean time each takes.
"""

from collections.abc import Callable
from math import floor, inf

from sojourn.erlang import delay_probability

__all__ = ["settled_stretch", "stretch"]

# A sum of so many powers of a ratio below 1 - this has no more to add.
_NEARLY_FULL = 1e-12
# It is known when another round changes no more than this part of it, or after so many.
_SETTLED, _ROUNDS = 1e-9, 200


def stretch(demand: float, cores: float, processors: float = inf) -> float:
    """Return how many times as long computing takes as on a core of its own, 1 or more.

    The records keep *demand* cores busy. Without a limit to the records that compute at once
    it is the sojourn over the service of M/M/c, 1 + C/(c - a), infinite from *demand* =
    *cores* on. With so many *processors*, whole or not, no more compute at once: others wait
    for one, which is not counted here. Then it is at most *processors* over *cores*.

    Of cores that are not whole, the probability that all are busy lies in between.

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
    """Return the stretch that goes with as many records as compute at once because of it.

    *computing* are these, at most, for a stretch: the longer computing takes, the less of its
    time a processor waits for something else.

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
    """Return 1 + r + r² + …, *number* terms, the last of them a part of one."""
    if ratio > 1 - _NEARLY_FULL:
        return number
    if number == inf:
        return 1 / (1 - ratio)
    whole = floor(number)
    return (1 - ratio**whole) / (1 - ratio) + (number - whole) * ratio**whole

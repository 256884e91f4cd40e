"""Measured latency as evidence against the floor of the model.

The model knows only the mean and variance of service times. If few records take very long and
all others nearly the same time, the gamma distribution with that variance overestimates
percentiles several times: with 2 % of 0.2 s among records of 0.02 s its p95 is 0.074 s instead
of 0.02 s. A latency that was measured is possible, whatever the model says.
"""

from collections.abc import Iterator, Sequence
from math import ceil, inf, sqrt

from sojourn.decide.target import Target
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.model.network import PERCENTILES

# Only the latest observations count, because service times may change.
_LATELY = 60
# Standard errors of the upper bound. Latencies of successive roots are correlated, so errors
# are assumed to be twice as large.
_SURELY = 2 * 2.0
# The fewest roots for a mean. For a percentile, `_roots` requires enough of them that the error
# is at most half of the part beyond the percentile.
_LEAST_ROOTS = 200


def lowest_s(observations: Sequence[Observation], statistic: str) -> float:
    """Return an upper bound of the lowest *statistic* measured lately; inf if unknown.

    The number of processors at that time does not matter: with as many, this latency is
    possible.
    """
    usable = [o for o in observations[-_LATELY:] if o.usable and not o.warming]
    blocks = _blocks(usable, _roots(statistic))
    return min((_at_most_s(block, statistic) for block in blocks), default=inf)


def not_reached(target: Target | None, lowest: float) -> str:
    """Return the note for a *target* below the *lowest* measured latency.

    >>> not_reached(Target("p95", 0.03), 0.0417)
    'p95 ≤ 0.03 s may be out of reach: the lowest that was measured is 0.0417 s'
    """
    return f"{target} may be out of reach: the lowest that was measured is {lowest:.3g} s"


def _roots(statistic: str) -> int:
    if statistic == "mean":
        return _LEAST_ROOTS
    ratio = PERCENTILES[statistic]
    return ceil((2 * _SURELY) ** 2 * ratio / (1 - ratio))


def _blocks(observations: Sequence[Observation], roots: int) -> Iterator[list[Observation]]:
    """Yield blocks of successive observations with at least *roots* roots, the latest first."""
    block: list[Observation] = []
    for observation in reversed(observations):
        block.append(observation)
        if sum(o.completions.number for o in block) >= roots:
            yield block
            block = []


def _at_most_s(block: Sequence[Observation], statistic: str) -> float:
    if statistic == "mean":
        sums = sum((o.sums for o in block), Sketch.empty())
        return sums.mean_s + _SURELY * sums.std_s / sqrt(sums.number)
    completions = sum((o.completions for o in block), Sketch.empty())
    ratio = PERCENTILES[statistic]
    chance = _SURELY * sqrt(ratio * (1 - ratio) / completions.number)
    return completions.percentile_s(ratio + chance)

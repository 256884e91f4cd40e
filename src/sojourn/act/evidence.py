"""The latency that was reached: a lower time than the model thinks possible is possible.

The model knows service times by their mean and variance alone. If few records take very long
and all others nearly the same time, the gamma distribution with that variance has percentiles
several times those of the records: with 2 % of 0.2 s among records of 0.02 s its p95 is 0.074 s
instead of 0.02 s.
"""

from collections.abc import Iterator, Sequence
from math import ceil, inf, sqrt

from sojourn.decide.target import Target
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.model.network import PERCENTILES

__all__ = ["lowest_s", "not_reached"]

# The observations that count: service times may change.
_LATELY = 60
# Standard errors that chance may add. Latencies of successive roots are correlated, so errors
# are taken for twice as large.
_SURELY = 2 * 2.0
# The fewest roots for a mean. A percentile takes so many that chance adds no more than half of
# the roots that may be later than it.
_LEAST_ROOTS = 200


def lowest_s(observations: Sequence[Observation], statistic: str) -> float:
    """Return the lowest *statistic* measured lately, with what chance adds; inf if unknown.

    Whatever the processors were: with as many, records of this kind can be as fast.
    """
    usable = [o for o in observations[-_LATELY:] if o.usable and not o.warming]
    blocks = _blocks(usable, _roots(statistic))
    return min((_at_most_s(block, statistic) for block in blocks), default=inf)


def not_reached(target: Target | None, lowest: float) -> str:
    """Return what is known of a *target* below the *lowest* latency measured.

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
    """Yield successive observations that have as many *roots*, the last ones first."""
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

"""The latency of an application, as the model predicts it and as it was measured.

The model knows only the mean and variance of service times. If few records take very long and
all others nearly the same time, the gamma distribution with that variance overestimates
percentiles several times: with 2 % of 0.2 s among records of 0.02 s its p95 is 0.074 s instead
of 0.02 s. A latency that was measured is possible, whatever the model says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt

from sojourn.decide.target import Target
from sojourn.errors import EndlessLoop, HotKey, TooFewCores, UnstableStation
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.measure.smooth import lasting
from sojourn.model.network import (
    PERCENTILES,
    least_s,
    mean_of,
    operator_figures,
    percentile_s,
    stations,
)
from sojourn.topology import Topology

SURELY = 2.0
"""Standard errors between the most likely value and a safe bound."""

# Only this time counts, because service times may change.
_LATELY_S = 600.0
# The fewest roots for a mean. For a percentile, `_roots` requires enough of them that the error
# is at most half of the part beyond the percentile.
_LEAST_ROOTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The predicted latency of an allocation."""

    seconds: float
    """The requested statistic."""
    mean_s: float
    sojourns_s: Mapping[str, float]
    """Mean sojourn time at each operator."""


def outlook(
    topology: Topology, allocation: Mapping[str, int], *, model: str, statistic: str
) -> Outlook | None:
    """Return the prediction for *allocation*, or None if it does not keep up."""
    try:
        operators = operator_figures(topology, allocation, stations(topology, model))
        mean = seconds = mean_of(operators)
        if statistic != "mean":  # a percentile takes about ten times as long to compute
            seconds = percentile_s(topology, allocation, statistic, model=model)
    except (UnstableStation, HotKey, TooFewCores, EndlessLoop):
        return None
    return Outlook(
        seconds=seconds,
        mean_s=mean,
        # with the transfer, because measured waits include it
        sojourns_s={name: o.sojourn_s for name, o in operators.items()},
    )


def floor_s(topology: Topology, *, model: str, statistic: str) -> float:
    """Return the statistic with unlimited processors; inf if even they do not keep up."""
    try:
        return least_s(topology, statistic, model=model)
    except (HotKey, TooFewCores, EndlessLoop):
        return inf


def lowest_s(observations: Sequence[Observation], statistic: str) -> float:
    """Return an upper bound of the lowest *statistic* measured lately; inf if unknown.

    The number of processors at that time does not matter: with as many, this latency is
    possible.
    """
    usable = [o for o in observations if o.usable and not o.warming]
    usable = usable[len(usable) - lasting(usable, _LATELY_S) :]
    blocks = _blocks(usable, _roots(statistic))
    return min((_bound_s(block, statistic, SURELY) for block in blocks), default=inf)


def not_reached(target: Target | None, lowest: float) -> str:
    """Return the note for a *target* below the *lowest* measured latency.

    >>> not_reached(Target("p95", 0.03), 0.0417)
    'p95 ≤ 0.03 s may be out of reach: the lowest that was measured is 0.0417 s'
    """
    return f"{target} may be out of reach: the lowest that was measured is {lowest:.3g} s"


def at_least_s(observations: Sequence[Observation], statistic: str, surely: float) -> float:
    """Return the measured statistic minus *surely* standard errors; 0 for too few roots."""
    few = sum(o.completions.number for o in observations) < _LEAST_ROOTS
    return 0.0 if few else _bound_s(observations, statistic, -surely)


def _bound_s(observations: Sequence[Observation], statistic: str, errors: float) -> float:
    """Return the measured statistic plus *errors* standard errors.

    Latencies of successive roots are correlated, so errors are assumed to be twice as large.
    """
    completions = Sketch.total(o.completions for o in observations)
    if statistic == "mean":
        sums = Sketch.total(o.sums for o in observations)
        return sums.mean_s + 2 * errors * sums.std_s / sqrt(completions.number)
    ratio = PERCENTILES[statistic]
    chance = 2 * errors * sqrt(ratio * (1 - ratio) / completions.number)
    return completions.percentile_s(max(0.0, ratio + chance))


def _roots(statistic: str) -> int:
    if statistic == "mean":
        return _LEAST_ROOTS
    ratio = PERCENTILES[statistic]
    return ceil((4 * SURELY) ** 2 * ratio / (1 - ratio))


def _blocks(observations: Sequence[Observation], roots: int) -> Iterator[list[Observation]]:
    """Yield blocks of successive observations with at least *roots* roots, the latest first."""
    block, completed = list[Observation](), 0
    for observation in reversed(observations):
        block.append(observation)
        completed += observation.completions.number
        if completed >= roots:
            yield block
            block, completed = [], 0

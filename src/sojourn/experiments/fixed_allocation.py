"""A fixed allocation: mean and standard deviation of latency, with confidence intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench, Conditions
from sojourn.measure.interval import Interval
from sojourn.measure.sketch import Sketch
from sojourn.plan import Plan

__all__ = ["Fixed", "fixed"]

# The beginning, when queues are still empty, is left out; the rest is divided into batches,
# which are nearly independent of each other.
_WARM_UP, _BATCHES = 0.1, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What an allocation did: E[T], and the standard deviation of what roots took."""

    allocation: Mapping[str, int]
    mean: Interval
    std: Interval


def fixed(
    bench: Bench, application: Application, allocation: Mapping[str, int], lasts_s: float
) -> Fixed:
    """Return what *allocation* does in *lasts_s*."""
    workload = application.workload(lasts_s, bench.seed)
    with bench.engine(Conditions(workload=workload, seed=bench.seed)) as engine:
        engine.start(application.running, Plan.here(allocation))
        engine.observe(_WARM_UP * lasts_s)
        batches = list[Sketch]()
        for batch in range(1, _BATCHES + 1):
            until_s = lasts_s * (_WARM_UP + (1 - _WARM_UP) * batch / _BATCHES)
            batches.append(engine.observe(until_s).roots.sums)
    return Fixed(
        allocation=dict(allocation),
        mean=Interval.over([batch.mean_s for batch in batches]),
        std=Interval.over([batch.std_s for batch in batches]),
    )

"""A fixed allocation: mean and standard deviation of latency, with confidence intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench, Conditions
from sojourn.measure.sketch import Sketch
from sojourn.plan import Plan

__all__ = ["Fixed", "Measured", "fixed"]

# The beginning, when queues are still empty, is left out; the rest is divided into batches,
# which are nearly independent. Student's t for 19 degrees of freedom, 95 %.
_WARM_UP, _BATCHES, _STUDENT = 0.1, 20, 2.093


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value, and half the width of its 95 % confidence interval.

    >>> Measured(1.0, 0.1).surely_below(Measured(1.3, 0.1))
    True
    >>> Measured(1.0, 0.1).surely_below(Measured(1.1, 0.1))
    False
    """

    value: float
    half_width: float

    @classmethod
    def over(cls, batches: list[float]) -> "Measured":
        """Return the mean of *batches* with its interval."""
        return cls(fmean(batches), _STUDENT * stdev(batches) / sqrt(len(batches)))

    def surely_below(self, other: "Measured") -> bool:
        """Tell whether *other* is higher by more than chance."""
        apart = other.value - self.value
        return apart > sqrt(self.half_width**2 + other.half_width**2)

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.half_width:.2g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What an allocation did: E[T], and the standard deviation of what roots took."""

    allocation: Mapping[str, int]
    mean: Measured
    std: Measured


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
        mean=Measured.over([batch.mean_s for batch in batches]),
        std=Measured.over([batch.std_s for batch in batches]),
    )

"""A fixed allocation: what it is estimated to do, and what it does."""

from dataclasses import dataclass

from sojourn.decide.plan import Plan
from sojourn.measure.interval import Interval
from sojourn.model.network import mean_s
from sojourn_papers.experiments.application import Application, joined
from sojourn_papers.experiments.bench import Bench, Conditions

# The beginning, when queues are still empty, is left out; the rest is divided into batches,
# which are nearly independent of each other.
_WARM_UP, _BATCHES = 0.1, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """E[T] of an allocation at a load, the standard deviation, and E[T] by both models."""

    per_s: float
    name: str
    mean: Interval
    std: Interval
    mmk_s: float
    gigk_s: float

    @property
    def ratio(self) -> float:
        """The measured mean over the estimate of M/M/k."""
        return self.mean.value / self.mmk_s


def fixed(
    bench: Bench, application: Application, processors: tuple[int, ...], lasts_s: float
) -> Fixed:
    """Return what these *processors* do in *lasts_s*."""
    topology, allocation = application.topology, application.allocation(*processors)
    workload = application.workload(lasts_s, bench.seed)
    ends_s = [
        lasts_s * (_WARM_UP + (1 - _WARM_UP) * batch / _BATCHES)
        for batch in range(_BATCHES + 1)
    ]
    with bench.engine(Conditions(workload=workload, seed=bench.seed)) as engine:
        engine.start(application.running, Plan.here(allocation))
        _, *batches = [engine.observe(until_s).roots.sums for until_s in ends_s]
    return Fixed(
        per_s=topology.arrivals_per_s,
        name=joined(processors),
        mean=Interval.over([batch.mean_s for batch in batches]),
        std=Interval.over([batch.std_s for batch in batches]),
        mmk_s=mean_s(topology, allocation, model="mmk"),
        gigk_s=mean_s(topology, allocation, model="gigk"),
    )

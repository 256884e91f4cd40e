"""The load of a station, and the variability of its arrivals where it is not measured.

Variability is the second-moment companion of the traffic equations, in squared coefficients of
variation (scv). It does not depend on the number of processors, so plans can change that
freely:

- joining:  streams superpose weighted by their rates, c² = Σ (λⱼ/λ) cⱼ²
- serving:  departures have the scv of the arrivals (exact for Poisson streams)
- sending:  each record turning into X records gives c² = E[X] c² + Var[X] / E[X], of which
  the usual splitting formula p c² + 1 - p is the case of at most one record
- looping:  inside a loop c² = 1
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True, kw_only=True)
class StationLoad:
    """The arrivals at an operator, and its service time.

    The scv (squared coefficient of variation) is the variance over the squared mean: 0 for
    constant gaps, 1 for a Poisson stream or an exponential time, more for bursts.

    >>> load = StationLoad(arrivals_per_s=8, service_s=0.5)
    >>> load.erlangs, load.min_processors
    (4.0, 5)
    """

    arrivals_per_s: float
    service_s: float
    """The mean service time of a record on one processor."""
    arrival_scv: float = 1.0
    """The scv of the gaps between arrivals."""
    service_scv: float = 1.0
    """The scv of the service time."""

    @property
    def erlangs(self) -> float:
        """The mean number of busy processors, whatever their total number."""
        return self.arrivals_per_s * self.service_s

    @property
    def min_processors(self) -> int:
        """The fewest processors that keep up: more than the Erlangs, so that it is stable."""
        return floor(self.erlangs) + 1


@dataclass(frozen=True, slots=True)
class Flow:
    """The rate and variability of a stream."""

    per_s: float
    scv: float
    """The scv of the gaps between records."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """The number of records sent to one target per record served."""

    mean: float
    variance: float

    def __call__(self, flow: Flow) -> Flow:
        """Return the flow sent to the target when *flow* is served.

        >>> FanOut(mean=0.25, variance=0.1875)(Flow(100, scv=0.2))  # one in four, by chance
        Flow(per_s=25.0, scv=0.8)
        >>> FanOut(mean=10, variance=0)(Flow(5, scv=0.2))  # ten at once
        Flow(per_s=50, scv=2.0)
        """
        return Flow(flow.per_s * self.mean, self.mean * flow.scv + self.variance / self.mean)


def arrival_scvs(
    external: Mapping[str, Iterable[Flow]],
    fan_outs: Mapping[str, Mapping[str, FanOut]],
    rates: Mapping[str, float],
    *,
    fixed: Mapping[str, float],
    order: Iterable[str],
    looped: AbstractSet[str],
) -> dict[str, float]:
    """Return the scv of the arrivals at each operator.

    *fixed* are measured values. In *order* each operator follows those that feed it, except for
    operators inside a loop, which are *looped*.
    """
    scvs: dict[str, float] = {}
    joined = {name: list(external.get(name, ())) for name in fan_outs}
    for name in order:
        inflow = sum(flow.per_s for flow in joined[name])
        if name in fixed:
            scvs[name] = fixed[name]
        elif name in looped or inflow == 0:
            scvs[name] = 1.0
        else:
            scvs[name] = sum(flow.per_s / inflow * flow.scv for flow in joined[name])
        served = Flow(rates[name], scvs[name])
        for target, fan_out in fan_outs[name].items():
            joined[target].append(fan_out(served))
    return scvs

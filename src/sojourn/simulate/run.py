"""A complete simulation, which measures the latency of an allocation."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from sojourn.errors import BadWorkload
from sojourn.measure.interval import Interval
from sojourn.measure.sketch import Sketch
from sojourn.model.network import PERCENTILES, OperatorFigures, check_allocation
from sojourn.simulate.simulation import Simulation
from sojourn.simulate.workload import Workload
from sojourn.topology import Topology

# The warm-up, as a part of the run. It is not measured, because queues start empty.
_WARM_UP = 0.1
# The rest is divided into batches (the method of batch means): long ones are nearly independent
# of each other, so their spread yields confidence intervals.
_BATCHES = 20


Portion = Callable[[float, NDArray[np.void]], None]
"""A callback with the completed part of a run, and the roots completed since the last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The result of a simulation: the figures of a prediction, measured after the warm-up."""

    name: str
    allocation: Mapping[str, int]
    mean_s: Interval
    """E[T]: the mean sum of the sojourns of a root's tree."""
    completion_mean_s: Interval
    std_s: Interval
    """Standard deviation of completion."""
    percentiles_s: Mapping[str, Interval]
    """Percentiles of completion."""
    completions: Sketch
    operators: Mapping[str, OperatorFigures]
    seed: int
    roots: int
    """Completed roots of the whole run."""
    visits: int
    """Served records of the whole run."""
    warm_up_s: float
    simulated_s: float
    """Simulated time of the whole run."""
    wall_s: float
    """Duration of the run itself."""


def simulate(  # noqa: PLR0913 - optional settings by name, with defaults
    topology: Topology,
    allocation: Mapping[str, int],
    *,
    roots: int | None = None,
    duration_s: float | None = None,
    workload: Workload | None = None,
    seed: int = 1,
    each: Portion = lambda _part, _roots: None,
) -> Simulated:
    """Simulate *allocation* until *roots* have completed, or for *duration_s*.

    *each* is called with the completed part of the run and the roots that completed since the
    last call: an array of births, completions and sums that is valid only during the call.

    Raise `BadAllocation` if it does not match the topology, `BadWorkload` if no root completes
    after the warm-up, or if not exactly one of *roots* and *duration_s* is given.
    """
    if (roots is None) == (duration_s is None):
        raise BadWorkload("give either the number of roots or the duration")
    check_allocation(topology, allocation)
    began = perf_counter()
    run = Simulation(topology, allocation, workload=workload or Workload(), seed=seed)
    batches = _stretches(run, roots, duration_s, each)
    next(batches)  # the first is the warm-up
    warm_up_s, entered = run.now_s, run.roots_entered
    run.watch(bin_s=inf, bins=1)
    completions, sums = zip(*batches, strict=True)
    whole, whole_sum = map(Sketch.total, (completions, sums))
    if not whole.number:
        raise BadWorkload(
            f"no root that arrived after the warm-up of {warm_up_s:g} s completed; "
            "simulate longer, or raise the arrival rates"
        )
    return Simulated(
        name=topology.name,
        allocation=dict(allocation),
        mean_s=_interval(whole_sum, sums, lambda s: s.mean_s),
        completion_mean_s=_interval(whole, completions, lambda s: s.mean_s),
        std_s=_interval(whole, completions, lambda s: s.std_s),
        percentiles_s={
            name: _interval(whole, completions, partial(Sketch.percentile_s, ratio=ratio))
            for name, ratio in PERCENTILES.items()
        },
        completions=whole,
        operators=_operators(run, allocation, warm_up_s, run.roots_entered - entered),
        seed=seed,
        roots=run.roots_done,
        visits=run.visits,
        warm_up_s=warm_up_s,
        simulated_s=run.now_s,
        wall_s=perf_counter() - began,
    )


def _stretches(
    run: Simulation, roots: int | None, duration_s: float | None, each: Portion
) -> Iterator[tuple[Sketch, Sketch]]:
    """Yield completions and sums of the warm-up, and then of each batch.

    Batches do not include roots that were born in the warm-up.
    """
    born_after_s = -1.0
    for batch in range(_BATCHES + 1):
        part = _WARM_UP + (1 - _WARM_UP) * batch / _BATCHES
        completed = summed = Sketch.empty()
        for done in run.advance(
            until_s=inf if duration_s is None else part * duration_s,
            most_roots=None if roots is None else round(part * roots),
        ):
            counted = done[done["birth_s"] > born_after_s]
            completed += Sketch.of(counted["completion_s"])
            summed += Sketch.of(counted["sum_s"])
            each(_part(run, roots, duration_s), done)
        if batch == 0:
            born_after_s = run.now_s
        yield completed, summed


def _part(run: Simulation, roots: int | None, duration_s: float | None) -> float:
    if roots is not None:
        return run.roots_done / max(1, roots)
    return run.now_s / duration_s if duration_s else 1.0


def _interval(
    whole: Sketch, batches: tuple[Sketch, ...], statistic: Callable[[Sketch], float]
) -> Interval:
    """Return the statistic of the whole run, with the confidence interval over its batches."""
    known = [statistic(batch) for batch in batches if batch.number]
    half_width = Interval.over(known).half_width if len(known) == _BATCHES else inf
    return Interval(statistic(whole), half_width)


def _operators(
    run: Simulation, allocation: Mapping[str, int], warm_up_s: float, roots: int
) -> dict[str, OperatorFigures]:
    measured_s, operators = run.now_s - warm_up_s, {}
    for name, operator in run.topology.operator.items():
        slots, arrived = run.processors(name), int(run.arrivals(name).sum())
        served = int(slots["served"].sum())
        operators[name] = OperatorFigures(
            processors=allocation[name],
            arrivals_per_s=arrived / measured_s,
            utilisation=float(slots["service_s"].sum()) / (allocation[name] * measured_s),
            wait_s=float(slots["wait_s"].sum()) / served if served else 0.0,
            service_s=float(slots["service_s"].sum()) / served if served else 0.0,
            transfer_s=operator.transfer_s,
            visits=arrived / roots,
        )
    return operators

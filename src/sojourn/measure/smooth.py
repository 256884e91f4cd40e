"""Smoothing: several observations averaged into one (DRS IV-A).

A smoother maps the history to an average; it has no state. The average is formed as follows:

- rates are weighted by time, times by samples, dispersions by bins, CPU time and the share of
  the hottest key by records served
- transfer times are a median: they hardly change, and a wait for something else would distort
  a mean for a long time
- wait, utilisation and completions depend on the allocation: only observations with the same
  running processors as the last one are used
- processors, backlog, memory and the cores of machines are those of the last observation
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Protocol

from sojourn.errors import BadInput
from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.measure.sketch import Sketch


class Smoother(Protocol):
    """Averages observations, oldest first, into one.

    Unusable observations are left out. If the last one is unusable, the average is marked as
    unusable with its reason, so that nothing is changed on it. If none is usable, the last one
    is returned. Raise `BadInput` if there are no observations.
    """

    def __call__(self, history: Sequence[Observation], /) -> Observation: ...


@dataclass(frozen=True, slots=True)
class Window:
    """A moving average: D(n) = (d(n-w+1) + … + d(n)) / w over usable observations."""

    size: int
    """The number of observations, w."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadInput(f"size is {self.size} observations; write 1 or more")

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        if not history:
            raise BadInput("there are no observations to smooth; observe first")
        usable = [observation for observation in history if observation.usable]
        if not usable:
            return history[-1]
        last = usable[-1]
        alike = [o for o in usable if o.operators.keys() == last.operators.keys()]
        alike = alike[-self.size :]
        settled = _since_the_allocation_changed(alike)
        by_stream = [o for o in alike if o.streams.keys() == last.streams.keys()]
        busy = [(o.busy_cores, o) for o in alike if o.busy_cores is not None]
        return replace(
            last,
            since_s=alike[0].since_s,
            usable=history[-1].usable,
            reason=history[-1].reason,
            operators={name: _operator(name, alike, settled) for name in last.operators},
            arrivals_per_s=_rate((o.arrivals_per_s, o) for o in alike),
            completed_per_s=_rate((o.completed_per_s, o) for o in settled),
            streams={
                name: _rate((o.streams[name], o) for o in by_stream) for name in last.streams
            },
            completions=sum((o.completions for o in settled), Sketch.empty()),
            sums=sum((o.sums for o in settled), Sketch.empty()),
            busy_cores=_rate(busy) if busy else None,
            nodes={name: _node(name, alike) for name in last.nodes},
        )


def _node(name: str, alike: Sequence[Observation]) -> ObservedNode:
    """Return the last observation of a node, with averages of its CPU use."""
    last = alike[-1].nodes[name]
    told = [
        (node, node.busy_cores, o)
        for o in alike
        if (node := o.nodes.get(name)) is not None and node.busy_cores is not None
    ]
    if not told:
        return last
    operators = {operator for node, _, _ in told for operator in node.computing}
    return replace(
        last,
        busy_cores=_rate((busy, o) for _, busy, o in told),
        computing={
            operator: _rate((node.computing.get(operator, 0.0), o) for node, _, o in told)
            for operator in sorted(operators)
        },
    )


def _since_the_allocation_changed(observations: Sequence[Observation]) -> list[Observation]:
    def running(observation: Observation) -> dict[str, int]:
        return {name: operator.running for name, operator in observation.operators.items()}

    now, settled = running(observations[-1]), list[Observation]()
    for observation in reversed(observations):
        if running(observation) != now:
            break
        settled.append(observation)
    return settled[::-1]


def _operator(
    name: str, alike: Sequence[Observation], settled: Sequence[Observation]
) -> ObservedOperator:
    here = [(o.operators[name], o) for o in alike]
    told = [(h.arrival_scv, h.bins - 1) for h, _ in here if h.arrival_scv is not None]
    busy = [
        (utilisation, o)
        for o in settled
        if (utilisation := o.operators[name].utilisation) is not None
    ]
    served = sum(h.served for h, _ in here)
    last = here[-1][0]
    return replace(
        last,
        arrivals_per_s=_rate((h.arrivals_per_s, o) for h, o in here),
        served_per_s=_rate((h.served_per_s, o) for h, o in here),
        served=served,
        service=sum((h.service for h, _ in here), Moments()),
        wait=sum((o.operators[name].wait for o in settled), Moments()),
        arrival_scv=_mean(told) if told else None,
        bins=sum(bins for _, bins in told) + 1 if told else last.bins,
        utilisation=_rate(busy) if busy else None,
        cpu_s=mean_cpu_s([h for h, _ in here]),
        hottest=_mean([(h.hottest, h.served) for h, _ in here]) if served > 0 else last.hottest,
        hottest_name=next((h.hottest_name for h, _ in reversed(here) if h.hottest_name), ""),
        transfer=_typical([h.transfer for h, _ in here]),
        bytes_per_s={
            stream: _rate(
                (h.bytes_per_s[stream], o) for h, o in here if stream in h.bytes_per_s
            )
            for stream in last.bytes_per_s
        },
    )


def mean_cpu_s(seen: Iterable[ObservedOperator]) -> float | None:
    """Return the mean CPU time of a record, weighted by records served; None if unknown."""
    told = [(o.cpu_s, o.served) for o in seen if o.cpu_s is not None and o.served > 0]
    return _mean(told) if told else None


def _typical(times: Sequence[Moments]) -> Moments:
    """Return the same number of times, all equal to the median of the means.

    Each observation has the same weight, because most samples are from intervals with waits.
    """
    told = [each.mean_s for each in times if each.mean_s is not None]
    middle_s = median_low(told) if told else 0.0
    number = sum(each.number for each in times)
    return Moments(number, number * middle_s, number * middle_s**2)


def _rate(values: Iterable[tuple[float, Observation]]) -> float:
    return _mean([(value, o.lasted_s) for value, o in values])


def _mean(values: Sequence[tuple[float, float]]) -> float:
    total = sum(weight for _, weight in values)
    return sum(value * (weight / total) for value, weight in values)

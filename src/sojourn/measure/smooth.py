"""Smoothing: several observations averaged into one (DRS IV-A), in two ways.

Smoothing takes the history and returns an average; it has no state. Weights of the average:

- rates are weighted by time, times by samples, dispersions by bins, CPU time and the share of
  the hottest key by records served
- transfer times are a median: they hardly change, and a mean would be distorted for long by a
  wait for something else
- wait, utilisation and completions depend on the allocation: only observations with the same
  running processors as the last one are used
- processors, backlog, memory and the machine's cores are those of the last one
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import numpy as np

from sojourn.errors import BadInput
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch

__all__ = ["Alpha", "Smoother", "Window"]


class Smoother(Protocol):
    """Averages observations, oldest first, into one.

    Those that are not usable are left out. If the last one is not usable, the average is marked
    as not usable with its reason, so that nothing is changed on it. If none is usable, the last
    one is returned. Raise `BadInput` if there are no observations.
    """

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        """Return the average of *history*."""
        ...


@dataclass(frozen=True, slots=True)
class Alpha:
    """Exponential smoothing: D(n) = α D(n-1) + (1 - α) d(n), with D(1) = d(1).

    With α = 0 it is the last observation. For values weighted by samples the sums are smoothed,
    so that an interval with few samples has little weight.
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise BadInput(f"alpha is {self.alpha}; write 0 or more, below 1")

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        """Return the smoothed average of *history*."""
        return _smoothed(history, self._weights)

    def _weights(self, number: int) -> list[float]:
        newer = [(1 - self.alpha) * self.alpha**age for age in range(number - 1)]
        return [*newer, self.alpha ** (number - 1)][::-1]


@dataclass(frozen=True, slots=True)
class Window:
    """D(n) = (d(n-w+1) + … + d(n)) / w: the mean of the last *size* usable observations."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadInput(f"size is {self.size} observations; write 1 or more")

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        """Return the average of the last observations of *history*."""
        return _smoothed(history, self._weights)

    def _weights(self, number: int) -> list[float]:
        return [float(age < self.size) for age in range(number)][::-1]


_Weights = Callable[[int], list[float]]
_Weighted = Sequence[tuple[Observation, float]]


def _smoothed(history: Sequence[Observation], weights: _Weights) -> Observation:
    if not history:
        raise BadInput("there are no observations to smooth; observe first")
    usable = [observation for observation in history if observation.usable]
    if not usable:
        return history[-1]
    last = usable[-1]
    alike = _weighted(
        [o for o in usable if o.operators.keys() == last.operators.keys()], weights
    )
    settled = _weighted(_since_the_allocation_changed([o for o, _ in alike]), weights)
    by_stream = [(o, w) for o, w in alike if o.streams.keys() == last.streams.keys()]
    busy = [(o.busy_cores, o, w) for o, w in alike if o.busy_cores is not None]
    return replace(
        last,
        since_s=alike[0][0].since_s,
        usable=history[-1].usable,
        reason=history[-1].reason,
        operators={name: _operator(name, alike, settled) for name in last.operators},
        arrivals_per_s=_rate((o.arrivals_per_s, o, w) for o, w in alike),
        completed_per_s=_rate((o.completed_per_s, o, w) for o, w in settled),
        streams={
            name: _rate((o.streams[name], o, w) for o, w in by_stream) for name in last.streams
        },
        completions=_blend([(o.completions, w) for o, w in settled]),
        sums=_blend([(o.sums, w) for o, w in settled]),
        busy_cores=_rate(busy) if busy else None,
    )


def _weighted(observations: Sequence[Observation], weights: _Weights) -> _Weighted:
    """Return the observations with a weight, scaled so that the largest is 1."""
    given = weights(len(observations))
    pairs = zip(observations, given, strict=True)
    return [(observation, weight / max(given)) for observation, weight in pairs if weight > 0]


def _since_the_allocation_changed(observations: Sequence[Observation]) -> list[Observation]:
    def running(observation: Observation) -> dict[str, int]:
        return {name: operator.running for name, operator in observation.operators.items()}

    now, settled = running(observations[-1]), list[Observation]()
    for observation in reversed(observations):
        if running(observation) != now:
            break
        settled.append(observation)
    return settled[::-1]


def _operator(name: str, alike: _Weighted, settled: _Weighted) -> ObservedOperator:
    here = [(o.operators[name], o, w) for o, w in alike]
    here_settled = [(o.operators[name], o, w) for o, w in settled]
    told = [(h.arrival_scv, w * (h.bins - 1)) for h, _, w in here if h.arrival_scv is not None]
    busy = [(h.utilisation, o, w) for h, o, w in here_settled if h.utilisation is not None]
    computed = [
        (h.cpu_s, w * h.served) for h, _, w in here if h.cpu_s is not None and h.served > 0
    ]
    return replace(
        here[-1][0],
        arrivals_per_s=_rate((h.arrivals_per_s, o, w) for h, o, w in here),
        served_per_s=_rate((h.served_per_s, o, w) for h, o, w in here),
        served=sum(h.served * w for h, _, w in here),
        service=sum((h.service * w for h, _, w in here), Moments()),
        wait=sum((h.wait * w for h, _, w in here_settled), Moments()),
        arrival_scv=_mean(told) if told else None,
        bins=sum(weight for _, weight in told) + 1 if told else here[-1][0].bins,
        utilisation=_rate(busy) if busy else None,
        cpu_s=_mean(computed) if computed else None,
        hottest=_mean([(h.hottest, w * h.served) for h, _, w in here])
        if any(w * h.served > 0 for h, _, w in here)
        else here[-1][0].hottest,
        transfer=_typical([(h.transfer, w) for h, _, w in here]),
        bytes_per_s={
            stream: _rate(
                (h.bytes_per_s[stream], o, w) for h, o, w in here if stream in h.bytes_per_s
            )
            for stream in here[-1][0].bytes_per_s
        },
    )


def _typical(times: Sequence[tuple[Moments, float]]) -> Moments:
    """Return as many times as there are, each as long as the median of the means.

    Observations are weighted, not their times: most times come from intervals with waits.
    """
    told = sorted((each.mean_s, w) for each, w in times if each.mean_s is not None)
    total = sum(weight for _, weight in told)
    counted = accumulate(weight for _, weight in told)
    middle_s = next((s for (s, _), n in zip(told, counted, strict=True) if 2 * n >= total), 0.0)
    number = sum(each.number * weight for each, weight in times)
    return Moments(number, number * middle_s, number * middle_s**2)


def _rate(values: Iterable[tuple[float, Observation, float]]) -> float:
    return _mean([(value, weight * o.lasted_s) for value, o, weight in values])


def _mean(values: Sequence[tuple[float, float]]) -> float:
    total = sum(weight for _, weight in values)
    return sum(value * (weight / total) for value, weight in values)


def _blend(sketches: Sequence[tuple[Sketch, float]]) -> Sketch:
    """Return the weighted sum of sketches.

    Counts are whole numbers. The running total is rounded, not each count: this keeps every
    rank to half a root, where small counts of old roots would all be rounded to 0.
    """
    counts = sum((sketch.counts * weight for sketch, weight in sketches), np.zeros(1))
    whole = np.diff(np.rint(np.cumsum(counts)), prepend=0.0).astype(np.int64)
    number, total = int(whole.sum()), float(counts.sum())
    if number == 0:
        return Sketch.empty()
    return Sketch.of_counts(
        whole,
        sum(sketch.sum_s * weight for sketch, weight in sketches) / total * number,
        sum(sketch.sum_ss * weight for sketch, weight in sketches) / total * number,
    )

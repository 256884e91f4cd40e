"""Smoothing: several observations averaged into one (DRS IV-A).

A smoother maps the history to an average; it has no state. The average is formed as follows:

- rates are weighted by time, times by samples, dispersions by bins, CPU time and the share of
  the hottest key by records served
- transfer times are a median: they hardly change, and a wait for something else would distort
  a mean for a long time
- wait, utilisation and completions depend on the allocation: only observations with the same
  running processors as the last one are used
- processors, backlog, memory and the cores of machines are those of the last observation

A short window is noisy on a steady load, a long one lags after a step. `steady` adapts: it
starts with the last few observations and adds older ones, a block at a time, while they differ
by no more than chance. Service times change less often than loads, and only some records are
timed, so service and CPU times of each operator are averaged over a window of their own, which
is often longer.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, sqrt
from statistics import median_low
from typing import Protocol

from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.measure.sketch import Sketch

# The length of a block, of which the adaptive window has at least one unless the load has just
# changed, and the most blocks in that window.
_BLOCK_S, _MOST_BLOCKS = 60.0, 5
# Each part that is tested for a step is this many times as long as the one before.
_LONGER = 1.25
# Differences above this many standard errors are significant. Steps need more, because they are
# tested at many positions to detect them before they fill the whole window.
_CHANCE, _RISE, _FALL = 2.5, 4.0, 5.0
# The same for service times, whose distributions have longer tails.
_OTHER = 4.0
# With fewer samples neither the mean nor its error is reliable.
_LEAST_SAMPLES = 5


class Smoother(Protocol):
    """Averages observations, at least one, oldest first, into one.

    Unusable observations are left out. If the last one is unusable, the average is marked as
    unusable with its reason, so that nothing is changed on it. If none is usable, the last one
    is returned.
    """

    def __call__(self, history: Sequence[Observation], /) -> Observation: ...


@dataclass(frozen=True, slots=True)
class Window:
    """A moving average: D(n) = (d(n-w+1) + … + d(n)) / w over usable observations."""

    size: int
    """The number of observations, w."""

    def __call__(self, history: Sequence[Observation], /) -> Observation:
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
            completions=Sketch.total(o.completions for o in settled),
            sums=Sketch.total(o.sums for o in settled),
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
        service=Moments.total(h.service for h, _ in here),
        wait=Moments.total(o.operators[name].wait for o in settled),
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


def steady(history: Sequence[Observation], /) -> Observation:
    """Return the mean of the last observations, back to the last change of the load."""
    usable = [observation for observation in history if observation.usable]
    if not usable:
        return history[-1]
    if not history[-1].usable:
        return Window(lasting(usable, _BLOCK_S))(history)
    return timed_longer(Window(_unchanged(usable))(history), usable)


def lasting(observations: Sequence[Observation], seconds: float) -> int:
    """Return how many of the last observations cover *seconds*; all if they do not.

    Policies count time, because looks may be a second apart or a minute.
    """
    covered_s = 0.0
    for number, observation in enumerate(reversed(observations), 1):
        covered_s += observation.lasted_s
        # clocks are not exact, and the nearest number is meant
        if covered_s + observation.lasted_s / 2 > seconds:
            return number
    return len(observations)


def _unchanged(usable: Sequence[Observation]) -> int:
    """Return the number of last observations with the same load from outside."""
    block = lasting(usable, _BLOCK_S)
    scv = max([1.0, *_scvs(usable[-block:])])
    load = _Load(usable[-block * (_MOST_BLOCKS + 1) :], scv)
    size = 1
    while size < block:
        if load.changed(size, block):
            return size
        size = ceil(size * _LONGER)
    size = block
    while size + block <= min(block * _MOST_BLOCKS, len(usable)):
        if load.differs(size, block):
            break
        size += block
    return size


class _Load:
    """Roots from outside in the last observations, compared with those before."""

    def __init__(self, observations: Sequence[Observation], scv: float) -> None:
        latest_first = observations[::-1]
        self._scv = scv
        self._seconds = [0.0, *accumulate(o.lasted_s for o in latest_first)]
        self._roots = [0.0, *accumulate(o.arrivals_per_s * o.lasted_s for o in latest_first)]

    def changed(self, size: int, block: int) -> bool:
        """Return whether the last *size* arrivals differ from the load before by a step.

        Square roots of counts are compared: their variance hardly depends on the load.
        """
        end = min(size + block, len(self._seconds) - 1)
        before_s = self._seconds[end] - self._seconds[size]
        part = self._seconds[size] / before_s
        expected = part * (self._roots[end] - self._roots[size])
        step = 2 * (sqrt(self._roots[size]) - sqrt(expected))
        errors = step / sqrt(self._scv * (1 + part))
        return errors > _RISE or errors < -_FALL

    def differs(self, size: int, block: int) -> bool:
        """Return whether the load of the *block* before the last *size* was another one."""
        now, variance = self._rate(0, size)
        then, older_variance = self._rate(size, size + block)
        return abs(now - then) > _CHANCE * sqrt(variance + older_variance)

    def _rate(self, begin: int, end: int) -> tuple[float, float]:
        """Return the roots per second and their variance."""
        end = min(end, len(self._seconds) - 1)
        lasted_s = self._seconds[end] - self._seconds[begin]
        roots = self._roots[end] - self._roots[begin]
        return roots / lasted_s, self._scv * max(roots, 1.0) / lasted_s**2


def timed_longer(observation: Observation, history: Sequence[Observation]) -> Observation:
    """Return *observation* with service times averaged back to their last change.

    The usable observations in *history*, oldest first, are compared in blocks.
    """
    usable = [earlier for earlier in history if earlier.usable]
    blocks = list(_blocks(usable))
    operators = {}
    for name, operator in observation.operators.items():
        service, taken = _service(name, blocks)
        cpu_s = mean_cpu_s([o.operators[name] for o in usable[len(usable) - taken :]])
        operators[name] = replace(operator, service=service, cpu_s=cpu_s or operator.cpu_s)
    return replace(observation, operators=operators)


def _blocks(usable: Sequence[Observation]) -> Iterator[Sequence[Observation]]:
    """Yield blocks of successive observations, the latest first."""
    until = len(usable)
    while until > 0:
        since = until - lasting(usable[:until], _BLOCK_S)
        yield usable[since:until]
        until = since


def _service(name: str, blocks: Iterable[Sequence[Observation]]) -> tuple[Moments, int]:
    """Return the service times of an operator, and the number of observations averaged."""
    alike, same = Moments(), 0
    for block in blocks:
        if any(name not in o.operators for o in block):
            break
        times = Moments.total(o.operators[name].service for o in block)
        if same and _changed(alike, times):
            break
        alike, same = alike + times, same + len(block)
    return alike, same


def _scvs(observations: Sequence[Observation]) -> list[float]:
    return [
        operator.arrival_scv
        for observation in observations
        for operator in observation.operators.values()
        if operator.arrival_scv is not None
    ]


def _changed(one: Moments, other: Moments) -> bool:
    """Return whether the means of two sets of service times differ significantly."""
    if min(one.number, other.number) < _LEAST_SAMPLES:
        return False
    # from both sets, because a few times that are short by chance also seem to vary little
    scv = (one + other).scv or 0.0
    mean_s, differs_s = (one + other).mean_s or 0.0, (one.mean_s or 0.0) - (other.mean_s or 0.0)
    return abs(differs_s) > _OTHER * mean_s * sqrt(scv * (1 / one.number + 1 / other.number))

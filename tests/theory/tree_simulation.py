"""A plain discrete-event simulation of a topology: what the models are checked against.

It shares no formula with `sojourn.model`. One event is a record that reaches an operator.
Queues are first come, first served and events are taken in the order of time, so when a
record is done is known as soon as it arrives: it goes to the processor that is free first
(or whose turn it is), starts when both are there, and ends a service time later.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace, merge
from itertools import count, cycle, islice
from math import floor
from random import Random

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from sojourn.topology import Arrival, Operator, Topology

__all__ = ["Estimate", "Roots", "estimate", "simulate"]

Times = NDArray[np.float64]

# Enough for a spread between batches, few enough for batches to be long.
_BATCHES = 25


@dataclass(frozen=True, slots=True)
class Roots:
    """What happened to each root, in the order they arrived.

    *completion_s* is the time until the last record of its tree was done, *total_s* the sum
    of transfer, wait and service over all records of its tree.
    """

    completion_s: Times
    total_s: Times


def simulate(
    topology: Topology,
    allocation: Mapping[str, int],
    *,
    roots: int,
    random: Random,
) -> Roots:
    """Return what happens to *roots* roots.

    A tenth as many before them, while queues fill, and after them are simulated and left
    out. Those after them matter where records overtake: in a loop, or between branches.
    """
    stations = {o.name: _Station(o, allocation[o.name], random) for o in topology.operators}
    left_out = roots // 10
    simulated = roots + 2 * left_out
    entered_s, done_s, total_s = (array("d", bytes(8 * simulated)) for _ in range(3))
    reached: list[tuple[float, int, str, int]] = []
    order = count()  # records that arrive at the same time are taken in the order sent

    def send(target: str, root: int, sent_s: float) -> None:
        total_s[root] += stations[target].transfer_s
        event = (sent_s + stations[target].transfer_s, next(order), target, root)
        heappush(reached, event)

    def serve_first() -> None:
        reached_s, _, name, root = heappop(reached)
        station = stations[name]
        ended_s = station.serve(reached_s)
        total_s[root] += ended_s - reached_s
        done_s[root] = max(done_s[root], ended_s)
        for target in station.children():
            send(target, root, ended_s)

    streams = (_entries(a, random) for a in topology.arrivals if a.per_s > 0)
    for root, (now_s, target) in enumerate(islice(merge(*streams), simulated)):
        while reached and reached[0][0] <= now_s:
            serve_first()
        entered_s[root] = now_s
        send(target, root, now_s)
    while reached:
        serve_first()
    counted = slice(left_out, left_out + roots)
    completion_s = np.array(done_s) - np.array(entered_s)
    return Roots(completion_s[counted], np.array(total_s)[counted])


class _Station:
    """An operator's processors, as the times at which they become free."""

    def __init__(self, operator: Operator, processors: int, random: Random) -> None:
        self.transfer_s = operator.transfer_s
        self.children = _children(operator, random)
        self._service_s = _gamma(
            operator.service_s / operator.speed, operator.service_scv, random
        )
        self._free_at_s = [0.0] * processors
        self._turns = cycle(range(processors)) if operator.dispatch == "round_robin" else None

    def serve(self, reached_s: float) -> float:
        """Return when a record that gets here now, after all before it, is done."""
        if self._turns is None:  # the heap's first is the processor that is free first
            ended_s = max(reached_s, self._free_at_s[0]) + self._service_s()
            heapreplace(self._free_at_s, ended_s)
        else:
            turn = next(self._turns)
            ended_s = max(reached_s, self._free_at_s[turn]) + self._service_s()
            self._free_at_s[turn] = ended_s
        return ended_s


def _entries(arrival: Arrival, random: Random) -> Iterator[tuple[float, str]]:
    """Yield when each root of a stream enters, and at which operator."""
    gap_s = _gamma(1 / arrival.per_s, arrival.scv, random)
    targets, shares = list(arrival.shares), list(arrival.shares.values())
    now_s = 0.0
    while True:
        now_s += gap_s()
        yield now_s, targets[0] if len(targets) == 1 else random.choices(targets, shares)[0]


def _children(operator: Operator, random: Random) -> Callable[[], list[str]]:
    """Return what draws the operators that the children of a record go to."""
    if operator.route == "one_of":
        targets, chances = [*operator.emits, None], [*operator.emits.values()]
        chances.append(max(0.0, 1 - sum(chances)))
        return lambda: [t for t in random.choices(targets, chances) if t is not None]
    always = [t for t, mean in operator.emits.items() for _ in range(floor(mean))]
    at_times = [(t, mean % 1) for t, mean in operator.emits.items() if mean % 1 > 0]
    if not at_times:
        return lambda: always
    return lambda: always + [t for t, chance in at_times if random.random() < chance]


def _gamma(mean_s: float, scv: float, random: Random) -> Callable[[], float]:
    """Return what draws gamma distributed times: constant at scv 0, exponential at 1."""
    if scv == 0 or mean_s == 0:
        return lambda: mean_s
    if scv == 1:
        return lambda: random.expovariate(1 / mean_s)
    return lambda: random.gammavariate(1 / scv, mean_s * scv)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of simulated times, and half the width of its confidence interval."""

    value: float
    half_width: float

    def agrees_with(self, other: float, *, allowance: float = 0.0) -> bool:
        """Tell whether *other* is in the interval, widened by a part of the value."""
        return abs(other - self.value) <= self.half_width + allowance * self.value


def estimate(
    times_s: Times, statistic: Callable[[Times], float], *, confidence: float
) -> Estimate:
    """Return *statistic* of all times, and how far it may be off.

    The times of roots close to each other are dependent, so the spread is taken from
    batches of consecutive roots that are far longer than the dependence reaches.
    """
    batches = [float(statistic(batch)) for batch in np.array_split(times_s, _BATCHES)]
    quantile = float(student.ppf((1 + confidence) / 2, _BATCHES - 1))
    half_width = quantile * float(np.std(batches, ddof=1)) / _BATCHES**0.5
    return Estimate(float(statistic(times_s)), half_width)

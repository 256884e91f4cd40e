"""Processors handed out one by one, each where it shortens the mean the most.

Because every further processor of an operator gains less than the one before, taking the
largest gain each time is optimal at every number of processors (DRS-15 Theorem 1). A heap
holds each operator's next gain, and an operator's wait advances one step of its recursion when
it gets a processor: nothing is computed twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import inf

from sojourn.decide.target import MOST_PROCESSORS
from sojourn.errors import BoundTooLow
from sojourn.model.network import check_keys
from sojourn.model.station import Station
from sojourn.topology import Topology

__all__ = ["QUICK", "THOROUGH", "Effort", "Gains", "least_allocation"]

# Where one processor keeps up, four may well not be enough for a strict target.
_ADDED = 1000


def least_allocation(topology: Topology) -> dict[str, int]:
    """Return the fewest processors with which each operator keeps up.

    Raise `HotKey` if one key is too much for any number of them, `BoundTooLow` if an operator's
    `max_processors` is below that.
    """
    least = {}
    check_keys(topology)
    for operator in topology.operators:
        needed = topology.loads[operator.name].min_processors
        if operator.max_processors is not None and operator.max_processors < needed:
            raise BoundTooLow(operator.name, operator.max_processors, needed)
        least[operator.name] = max(needed, operator.min_processors)
    return least


class Gains:
    """An allocation that grows by the largest gain each time, from the least or *start*."""

    def __init__(
        self,
        topology: Topology,
        stations: Mapping[str, Station],
        start: Mapping[str, int] | None = None,
    ) -> None:
        least = least_allocation(topology) if start is None else start
        self._names = list(least)
        self._processors = list(least.values())
        self._most = [o.most_processors or inf for o in topology.operators]
        self._visits = [topology.visits[name] for name in self._names]
        self._waits = [
            stations[name].waits_s(topology.loads[name], processors)
            for name, processors in least.items()
        ]
        self._wait_s = [next(waits) for waits in self._waits]
        self._total = sum(self._processors)
        # Losses, not gains, as heapq keeps the smallest in front: what one more processor does
        # to the mean, the operator, and its wait from then on.
        self._heap: list[tuple[float, int, float]] = []
        for i, (now_s, waits) in enumerate(zip(self._wait_s, self._waits, strict=True)):
            if self._processors[i] < self._most[i]:
                after_s = next(waits)
                self._heap.append(((after_s - now_s) * self._visits[i], i, after_s))
        heapify(self._heap)

    @property
    def allocation(self) -> dict[str, int]:
        """Processors per operator."""
        return dict(zip(self._names, self._processors, strict=True))

    @property
    def processors(self) -> int:
        """All processors."""
        return self._total

    @property
    def wait_s(self) -> float:
        """The mean time that a root's records wait, all added up."""
        return sum(v * w for v, w in zip(self._visits, self._wait_s, strict=True))

    def hand_out(self, processors: int, *, until_wait_s: float = -inf) -> list[int]:
        """Add up to *processors*, and return the indices of who got them, in order.

        Stop early if no operator may have more; with *until_wait_s*, also once the wait is
        down to it, or nothing shortens it.
        """
        heap, given = self._heap, list[int]()
        held, visits, most = self._processors, self._visits, self._most
        wait_s, waits = self._wait_s, self._waits
        watched = until_wait_s > -inf
        total_s = summed_s = self.wait_s
        for _ in range(processors):
            if not heap or total_s <= until_wait_s:
                break
            loss, i, now_s = heap[0]
            if loss >= 0:
                if not watched:
                    given += self._spread(processors - len(given))
                break
            total_s += loss
            given.append(i)
            wait_s[i] = now_s
            held[i] += 1
            if watched and total_s < summed_s / 2:  # a digit was lost, so add up anew
                total_s = summed_s = self.wait_s
            if held[i] < most[i]:
                after_s = next(waits[i])
                heapreplace(heap, ((after_s - now_s) * visits[i], i, after_s))
            else:
                heappop(heap)
        self._total += len(given)
        return given

    def _spread(self, processors: int) -> list[int]:
        """Add processors in turn, once none gains anything."""
        given: list[int] = []
        takers = sorted(i for _, i, _ in self._heap)
        while len(given) < processors:
            takers = [i for i in takers if self._processors[i] < self._most[i]]
            if not takers:
                self._heap.clear()
                break
            turn = takers[: processors - len(given)]
            for i in turn:
                self._processors[i] += 1
            given += turn
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The number of operators that a search for a percentile looks at, and where it ends.

    Processors are handed out one by one. No more than *times* those that keep up (and a
    thousand) are tried; without *times*, as many as there can be.

    >>> Effort(looks=200, times=4).most_processors(22)
    1088
    """

    looks: int
    times: int | None = None

    def most_processors(self, keeping_up: int) -> int:
        """Return how many processors are tried where *keeping_up* keep up."""
        if self.times is None:
            return MOST_PROCESSORS
        return min(_ADDED + self.times * keeping_up, MOST_PROCESSORS)


THOROUGH = Effort(looks=30_000)
"""Some three seconds' work for a percentile."""


QUICK = Effort(looks=200, times=4)
"""For a plan at every turn: the start of the search for a percentile is rarely a processor too
many, and most of the time goes into the proof of that."""

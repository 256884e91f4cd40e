"""Greedy allocation: each processor goes to the operator with the largest gain.

Each further processor of an operator gains less than the one before, so the greedy choice is
optimal for every number of processors (DRS-15 Theorem 1). A heap holds the next gain of each
operator. When an operator gets a processor, its wait advances by one step of the recursion, so
nothing is computed twice.
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

# A multiple alone is not enough: where one processor keeps up, a strict target may need
# more than four.
_ADDED = 1000


def least_allocation(topology: Topology) -> dict[str, int]:
    """Return the fewest processors with which each operator keeps up.

    Raise `HotKey` if no number of processors can serve one of the keys, `BoundTooLow` if an
    operator's `max_processors` is below the minimum.
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
    """An allocation that grows by the largest gain, from the minimum or from *start*."""

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
        # (change of the mean by one more processor, operator, its new wait). The change is
        # negative, because heapq keeps the smallest entry in front.
        self._heap: list[tuple[float, int, float]] = []
        for i, (now_s, waits) in enumerate(zip(self._wait_s, self._waits, strict=True)):
            if self._processors[i] < self._most[i]:
                after_s = next(waits)
                self._heap.append(((after_s - now_s) * self._visits[i], i, after_s))
        heapify(self._heap)

    @property
    def allocation(self) -> dict[str, int]:
        return dict(zip(self._names, self._processors, strict=True))

    @property
    def processors(self) -> int:
        return self._total

    @property
    def wait_s(self) -> float:
        """The mean total wait of all records of a root."""
        return sum(v * w for v, w in zip(self._visits, self._wait_s, strict=True))

    def hand_out(self, processors: int, *, until_wait_s: float = -inf) -> list[int]:
        """Add up to *processors*, and return the indices of the operators, in order.

        Stop early if all operators are at their maximum; with *until_wait_s*, also when the
        wait has fallen to it, or cannot be shortened.
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
            # repeated subtraction loses precision, so sum again whenever the total has halved
            if watched and total_s < summed_s / 2:
                total_s = summed_s = self.wait_s
            if held[i] < most[i]:
                after_s = next(waits[i])
                heapreplace(heap, ((after_s - now_s) * visits[i], i, after_s))
            else:
                heappop(heap)
        self._total += len(given)
        return given

    def _spread(self, processors: int) -> list[int]:
        """Add processors round-robin when none has a gain."""
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
    """The budget of a search for a percentile.

    >>> Effort(looks=200, times=4).most_processors(22)
    1088
    """

    looks: int
    """Evaluations of single operators, in total."""
    times: int | None = None
    """Limits the processors to this multiple of the minimum, plus a thousand."""
    explains: bool = True
    """Whether the solution states a reason, which takes another search."""

    def most_processors(self, keeping_up: int) -> int:
        """Return the largest number to try, given that *keeping_up* is the minimum."""
        if self.times is None:
            return MOST_PROCESSORS
        return min(_ADDED + self.times * keeping_up, MOST_PROCESSORS)


THOROUGH = Effort(looks=30_000)
"""About three seconds for a percentile."""


QUICK = Effort(looks=200, times=4, explains=False)
"""For a plan in every turn. The start of the search is rarely one processor too many; most of
the time is spent on the proof that it is not."""

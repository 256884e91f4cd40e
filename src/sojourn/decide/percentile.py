"""The fewest processors for a percentile of completion.

A percentile is not a sum over operators, so greedy allocation by gain only gives a good start.
From there the search removes one processor at a time: first wherever the target is still met,
then with moves between operators. Bounds prove that no smaller total exists: more processors
never hurt, so the number an operator needs when all others have their maximum is a lower bound
for every plan. If the bounds exclude all allocations of a total, that is the proof; if they
leave a few, the search tries all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np

from sojourn.decide.gains import THOROUGH, Effort, Gains, least_allocation
from sojourn.decide.target import MOST_PROCESSORS, Target
from sojourn.errors import CannotBeDone, TargetBelowFloor, TargetOutOfReach, TargetTooStrict
from sojourn.model.completion import Completion
from sojourn.model.lattice import Lattice
from sojourn.model.network import (
    PERCENTILES,
    hot_key,
    mean_floor_s,
    percentile_s,
    served_s,
    stations,
)
from sojourn.topology import Topology

# Points of the lattice of the search, which ends just after the target.
_POINTS = 1024
# This close to the target, the finer lattice of `predict` decides, whose result is reported.
# The error of both lattices is smaller, even if all roots take the same time.
_CLOSE = 0.01
# When so many processors are added at once, the target may be out of reach.
_MANY = 32
# Allowance for sums that round to slightly more than the permitted part of late roots.
_ROUNDING = 1e-9

_Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fewest:
    """An allocation that meets the target, and a lower bound."""

    allocation: Mapping[str, int]
    least: int
    """No allocation with a smaller total meets the target."""


def fewest_for_percentile(
    topology: Topology, target: Target, *, model: str, effort: Effort = THOROUGH
) -> Fewest:
    """Return the fewest processors that meet a percentile *target*.

    Raise `TargetBelowFloor` or `TargetOutOfReach` if no number does, `TargetTooStrict` if none
    within the limit of *effort* does.
    """
    search = _Search(topology, target, model)
    best = search.by_gain(effort)
    search.left = effort.looks
    try:
        while search.tighten(sum(best) - 1):
            fewer = search.step_down(best) or search.any_of(sum(best) - 1)
            if fewer is None:
                break
            best = fewer
    except _OutOfBudget:
        return Fewest(search.named(best), min(sum(search.least), sum(best)))
    return Fewest(search.named(best), sum(best))


class _Late(NamedTuple):
    """The parts of all roots that complete after three points of time; ordered by the first."""

    at_target: float
    sooner: float
    """After a time 1 % before the target."""
    later: float
    """After a time 1 % past the target."""


class _OutOfBudget(Exception):
    """The search has used up its budget of evaluations."""


class _Search:
    """Allocations of one topology, tried against one target."""

    def __init__(self, topology: Topology, target: Target, model: str) -> None:
        self._topology, self._target, self._model = topology, target, model
        self._names = tuple(topology.operator)
        self._allowed = 1 - PERCENTILES[target.statistic] + _ROUNDING
        lattice = Lattice.up_to(target.seconds * (1 + _CLOSE), _POINTS)
        self._stations = stations(topology, model)
        self._completion = Completion(topology, self._stations, lattice)
        self._ends = [
            round(target.seconds * part / lattice.step_s - 0.5)
            for part in (1 - _CLOSE, 1, 1 + _CLOSE)
        ]
        self._late: dict[_Counts, _Late] = {}
        self._meets: dict[_Counts, bool] = {}
        self.least = tuple(least_allocation(topology).values())
        self._most = tuple(o.most_processors or MOST_PROCESSORS for o in topology.operators)
        # the wait that remains with unlimited processors
        keys_s = mean_floor_s(topology, model=model) - served_s(topology)
        self._keys_s = keys_s * (1 + _ROUNDING)
        self.left = 0

    def named(self, counts: _Counts) -> dict[str, int]:
        return dict(zip(self._names, counts, strict=True))

    def late(self, counts: _Counts) -> _Late:
        """Return the part of all roots that complete after the target."""
        if counts not in self._late:
            self.left -= len(counts)
            if self.left < 0:
                raise _OutOfBudget
            self._late[counts] = self._measure(self.named(counts))
        return self._late[counts]

    def _measure(self, allocation: Mapping[str, int | None]) -> _Late:
        in_time = np.cumsum(self._completion(allocation))[self._ends]
        sooner, at_target, later = (1 - in_time).tolist()
        return _Late(at_target, sooner, later)

    def meets(self, counts: _Counts) -> bool:
        """Return whether *counts* meet the target; close to it, by the finer lattice."""
        if counts not in self._meets:
            late = self.late(counts)
            self._meets[counts] = late.sooner <= self._allowed or (
                late.later <= self._allowed
                and self._reached_s(self.named(counts)) <= self._target.seconds
            )
        return self._meets[counts]

    def _reached_s(self, allocation: Mapping[str, int]) -> float:
        statistic = self._target.statistic
        return percentile_s(self._topology, allocation, statistic, model=self._model)

    def by_gain(self, effort: Effort) -> _Counts:
        """Return the first greedy allocation that meets the target.

        Double the number of added processors until the target is met, then bisect.
        """
        self.left = MOST_PROCESSORS * len(self._names)  # the start has no budget
        gains = Gains(self._topology, self._stations)
        start, given = tuple(gains.allocation.values()), list[int]()
        ahead, most = 1, effort.most_processors(gains.processors)
        while not self.meets(tuple(gains.allocation.values())):
            if ahead == _MANY:
                self._check_floor()
            more = self._handed_out(gains, min(ahead, most - gains.processors))
            if not more:
                self._check_floor()
                raise self._refusal(gains, most)
            given += more
            ahead *= 2

        def after(handed_out: int) -> _Counts:
            counts = list(start)
            for i in given[:handed_out]:
                counts[i] += 1
            return tuple(counts)

        low, high = -1, len(given)  # low fails (or is below the start), high meets
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.meets(after(middle)) else (middle, high)
        return after(high)

    def _handed_out(self, gains: Gains, number: int) -> list[int]:
        """Add processors by gain, or round-robin if only siblings still wait for each other."""
        more = gains.hand_out(number, until_wait_s=0.0)
        bounds = {o.name: o.most_processors for o in self._topology.operators}
        if more or gains.wait_s > self._keys_s or self._is_as_soon_with(gains, bounds):
            return more
        return gains.hand_out(number)

    def _refusal(self, gains: Gains, most: int) -> CannotBeDone:
        """Return the error for a target that is missed with all processors allowed."""
        target, held = str(self._target), gains.allocation
        waits = gains.wait_s > self._keys_s
        if not waits and self._is_as_soon_with(gains, dict.fromkeys(self._names)):
            # this is the floor, computed on the finer lattice
            return TargetBelowFloor(target, self._reached_s(held), self._hot())
        if gains.processors >= most:
            return TargetTooStrict(target, self._reached_s(held), gains.processors)
        if not waits:  # only siblings wait, because of `max_processors`
            operators = self._topology.operators
            held = {o.name: o.most_processors or held[o.name] for o in operators}
        return TargetOutOfReach(target, self._reached_s(held), sum(held.values()))

    def _is_as_soon_with(self, gains: Gains, most: Mapping[str, int | None]) -> bool:
        """Return whether even *most* processors would not reduce the part of late roots."""
        counts = tuple(gains.allocation.values())
        return self.late(counts).later <= self._measure(most).later + _ROUNDING

    def _check_floor(self) -> None:
        """Raise `TargetBelowFloor` if the target is missed with unlimited processors."""
        unlimited, horizon_s = dict.fromkeys(self._names), self._target.seconds
        if self._measure(unlimited).later <= self._allowed:
            return
        while True:
            horizon_s *= 2
            lattice = Lattice.up_to(horizon_s, _POINTS)
            masses = Completion(self._topology, self._stations, lattice)(unlimited)
            if float(masses.sum()) > 1 - self._allowed:
                floor_s = lattice.percentile_s(masses, 1 - self._allowed)
                raise TargetBelowFloor(str(self._target), floor_s, self._hot())

    def _hot(self) -> str:
        """Return the key that makes the target impossible; empty if it is not a key."""
        hot = hot_key(self._topology, model=self._model)
        if hot is None:
            return ""
        without = self._topology.with_operators(
            *(replace(o, hottest_key=0.0) for o in self._topology.operators)
        )
        lattice = Lattice.up_to(self._target.seconds, _POINTS)
        free = Completion(without, stations(without, self._model), lattice)
        met = float(free(dict.fromkeys(self._names)).sum()) >= 1 - self._allowed
        return hot.said if met else ""

    def tighten(self, total: int) -> bool:
        """Raise `least` to the processors that each operator needs in any plan of *total*.

        Return whether any plan remains. Totals only decrease, so bounds stay valid. Each
        bound that rises leaves less for the others, so repeat until none changes.
        """
        least = list(self.least)
        settled = False
        while not settled:
            settled = True
            for i in range(len(least)):
                spare = total - sum(least)
                others = [
                    min(k + spare, most) for k, most in zip(least, self._most, strict=True)
                ]
                if spare < 0 or not self.meets(tuple(others)):
                    return False
                low, high = least[i], others[i]
                while low < high:
                    others[i] = (low + high) // 2
                    if self.meets(tuple(others)):
                        high = others[i]
                    else:
                        low = others[i] + 1
                settled = settled and low == least[i]
                least[i] = low
            self.least = tuple(least)
        return True

    def step_down(self, best: _Counts) -> _Counts | None:
        """Return an allocation with one processor fewer than *best* that meets the target.

        Local search: follow the best move while fewer roots are late. None if that fails.
        """
        around = [fewer for i in range(len(best)) if (fewer := self._moved(best, i, None))]
        while around:
            here = min(around, key=self.late)
            if self.meets(here):
                return here
            places = range(len(here))
            moves = [m for i in places for j in places if (m := self._moved(here, i, j))]
            around = [move for move in moves if self.late(move) < self.late(here)]
        return None

    def any_of(self, total: int) -> _Counts | None:
        """Return an allocation of *total* that meets the target, by exhaustive search.

        Raise `_OutOfBudget` if there are too many to try.
        """
        spare, operators = total - sum(self.least), len(self.least)
        if comb(spare + operators - 1, operators - 1) * operators > self.left:
            raise _OutOfBudget
        every = _shared_out(spare, self.least, self._most)
        return next((counts for counts in every if self.meets(counts)), None)

    def _moved(self, counts: _Counts, giver: int, taker: int | None) -> _Counts | None:
        """Return *counts* with one processor moved or removed, None if bounds forbid it."""
        moved = list(counts)
        moved[giver] -= 1
        if taker is not None:
            moved[taker] += 1
            if giver == taker or moved[taker] > self._most[taker]:
                return None
        return tuple(moved) if moved[giver] >= self.least[giver] else None


def _shared_out(spare: int, least: _Counts, most: _Counts) -> Iterator[_Counts]:
    """Yield all distributions of *spare* processors over operators that have *least* each."""
    if len(least) == 1:
        if least[0] + spare <= most[0]:
            yield (least[0] + spare,)
        return
    for own in range(min(spare, most[0] - least[0]) + 1):
        for others in _shared_out(spare - own, least[1:], most[1:]):
            yield (least[0] + own, *others)

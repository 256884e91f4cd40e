"""The error budget of an objective: slices judged, and the level of load to plan for.

If a slice missed the target, the level rises by a step times `kept`; if it kept the target, the
level falls by the step times 1 - `kept` (adaptive conformal inference, Gibbs and Candès 2021).
It settles where slices are missed as often as the objective permits: above 0 if the load is
hard to predict, below 0 if less than the model asks for is enough. So it is the budget itself:
the level at the start, plus the step times the slices missed beyond those permitted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, isfinite

from sojourn.decide.objective import Objective, Slice, least_roots
from sojourn.measure.births import Births

# The step of the level, and the level at the start.
_STEP, _START = 0.1, 0.15
# Whatever happened, plans are for half of the load or more, and for ten times as much or less.
_LOWEST, _HIGHEST = -0.5, 9.0
# Slices are counted in periods of this length, for a day.
_PERIOD_S, _DAY_S = 300.0, 86_400.0
_ROUNDING = 1e-9
_DOWN = "the application was not running"
_BELOW_THE_FLOOR = "too many roots are late without any waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSlice:
    """A slice that cannot be judged yet."""

    births: Births
    """Its roots; if slices were joined, with the number of the first one."""
    last: int
    """The number of the slice, or of the last one that was joined."""
    causes: tuple[str, ...] = ()
    """Events that a margin does not prevent."""

    @property
    def first(self) -> int:
        return self.births.slice

    @classmethod
    def empty(cls, number: int) -> "OpenSlice":
        return cls(births=Births(slice=number), last=number)

    def with_cause(self, cause: str) -> "OpenSlice":
        return self if cause in self.causes else replace(self, causes=(*self.causes, cause))

    def __add__(self, later: "OpenSlice") -> "OpenSlice":
        return OpenSlice(
            births=self.births + later.births,
            last=later.last,
            causes=tuple(dict.fromkeys((*self.causes, *later.causes))),
        )

    def judged(self, slice_s: float) -> Slice:
        """Return it as a slice; open roots count with their age."""
        births = self.births
        return Slice(
            self.first * slice_s,
            (self.last + 1) * slice_s,
            births.born,
            births.in_time,
            births.sum_s + births.open_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSlice:
    """A slice, and whether it kept the target.

    >>> from sojourn.decide.target import Target
    >>> objective = Objective(target=Target("p95", 3.0))
    >>> judged = Slice(60, 120, 800, 700)
    >>> print(JudgedSlice(slice=judged, kept=False, objective=objective, level=0.2))
    p95 ≤ 3 s was missed from 60 s to 120 s: 100 of 800 roots took longer
    """

    slice: Slice
    kept: bool
    objective: Objective
    level: float
    """The part of the load that is planned for in addition, from then on."""
    cause: str = ""
    """The cause of a miss that a margin would not have prevented; empty if there was none."""

    def __str__(self) -> str:
        since_s, until_s = self.slice.since_s, self.slice.until_s
        verdict = "kept" if self.kept else "missed"
        when = f"from {since_s:g} s to {until_s:g} s"
        return f"{self.objective.target} was {verdict} {when}: {self.found}"

    @property
    def found(self) -> str:
        """What was measured, and the cause."""
        judged, target = self.slice, self.objective.target
        found = f"{judged.born - judged.in_time} of {judged.born} roots took longer"
        if target.statistic == "mean":
            found = f"it was {judged.sum_s / judged.born:.3g} s"
        why = f" ({self.cause})" if self.cause else ""
        return f"{found}{why}"


@dataclass(frozen=True, slots=True)
class Period:
    """The slices that ended in some minutes."""

    number: int
    judged: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    """Slices judged against an objective, and the level that follows from them.

    >>> from sojourn.decide.target import Target
    >>> budget = ErrorBudget(objective=Objective(target=Target("p95", 1.0)))
    >>> late = Births(slice=0, completed=100, in_time=94)
    >>> budget = budget.saw(50, 61, [late], late_alone=lambda: 0.0)
    >>> budget.judged, budget.missed, round(budget.level, 3)
    (1, 1, 0.249)
    """

    objective: Objective
    level: float = _START
    """The part of the load that is planned for in addition."""
    since: int = 0
    """The number of the first slice that is not judged yet."""
    waiting: tuple[OpenSlice, ...] = ()
    """The slices that are not judged yet, oldest first."""
    judged: int = 0
    missed: int = 0
    """Slices that missed the target, for whatever cause."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Misses that a margin would not have prevented, by cause."""
    born: int = 0
    """Roots of the slices that were judged."""
    in_time: int = 0
    """Those of them that completed within the target."""
    periods: tuple[Period, ...] = ()
    """The slices of the last day, a period of some minutes each, oldest first."""
    latest: tuple[JudgedSlice, ...] = ()
    """The slices that were judged at the last look."""

    @property
    def overspent(self) -> bool:
        """Whether more slices have missed the target than the objective permits."""
        return self.level > _START

    def burn_rate(self, seconds: float) -> float | None:
        """Return how fast the budget was used in the last *seconds*; None without slices.

        At 1, as many slices are missed as the objective permits; at 2, twice as many.
        """
        since = (self.since * self.objective.slice_s - seconds) / _PERIOD_S
        lately = [period for period in self.periods if period.number >= since]
        judged = sum(period.judged for period in lately)
        if judged == 0:
            return None
        missed = sum(period.missed for period in lately)
        return missed / judged / (1 - self.objective.kept)

    @property
    def left(self) -> int:
        """How many slices may still be missed, of those that a day permits; below 0, too many.

        The day is the last 24 hours, or the first ones.
        """
        permitted = (1 - self.objective.kept) * _DAY_S / self.objective.slice_s
        return floor(permitted + _ROUNDING) - sum(period.missed for period in self.periods)

    def down(self, slices: int) -> "ErrorBudget":
        """Return the budget after *slices* in which the application was not running."""
        causes = {**self.causes, _DOWN: self.causes.get(_DOWN, 0) + slices}
        return replace(
            self,
            judged=self.judged + slices,
            missed=self.missed + slices,
            causes=causes,
            periods=(*self.periods, Period(-1, slices, slices)),
        )

    def clamped(self, level: float) -> float:
        """Return *level*, or the closest one that may be."""
        return min(max(level, _LOWEST), _HIGHEST) if isfinite(level) else self.level

    def saw(
        self,
        since_s: float,
        at_s: float,
        births: Iterable[Births],
        *,
        late_alone: Callable[[], float],
        cause: str = "",
    ) -> "ErrorBudget":
        """Return the budget after an interval, with the slices judged that can be.

        *births* are the roots that completed in the interval, and those open at its end.
        *late_alone* returns the part of the roots that are late without any waiting. A *cause*
        is one of misses that a margin does not prevent, in this interval.
        """
        waiting = {
            each.first: replace(each, births=replace(each.births, open=0, open_s=0.0))
            for each in self.waiting
        }
        numbers = {
            n: each.first for each in self.waiting for n in range(each.first, each.last + 1)
        }
        for told in births:
            if told.slice >= self.since:
                first = numbers.setdefault(told.slice, told.slice)
                found = waiting.get(first) or OpenSlice.empty(first)
                waiting[first] = replace(found, births=found.births + told)
        budget = replace(self, waiting=tuple(waiting[n] for n in sorted(waiting)), latest=())
        if cause:
            budget = budget.excused(since_s, at_s, cause)
        return _judged(budget, at_s, late_alone)

    def excused(self, since_s: float, until_s: float, cause: str) -> "ErrorBudget":
        """Return the budget with a *cause* of misses from *since_s* until *until_s*."""
        slice_s, target_s = self.objective.slice_s, self.objective.target.seconds
        # roots that were under way are late as well, and those that had to wait for them
        first = max(self.since, floor((since_s - target_s) / slice_s))
        last = ceil((until_s + target_s) / slice_s) - 1
        waiting = list(self.waiting)
        there = {n for each in waiting for n in range(each.first, each.last + 1)}
        waiting += [OpenSlice.empty(n) for n in range(first, last + 1) if n not in there]
        waiting.sort(key=lambda each: each.first)
        return replace(
            self,
            waiting=tuple(
                each.with_cause(cause) if first <= each.last and each.first <= last else each
                for each in waiting
            ),
        )


def _judged(budget: ErrorBudget, at_s: float, late_alone: Callable[[], float]) -> ErrorBudget:
    """Return *budget* with the slices judged whose roots had the time of the target."""
    objective, left = budget.objective, list(budget.waiting)

    def ended(number: int) -> bool:
        if number >= len(left):
            return False
        return (left[number].last + 1) * objective.slice_s + objective.target.seconds <= at_s

    if not ended(0):
        return budget
    late = late_alone()
    least = max(1, least_roots(objective, late))
    while ended(0):
        if left[0].births.born == 0:
            del left[0]
            continue
        if left[0].births.born < least:
            if not ended(1):  # it is joined with the next slice once that has ended
                break
            left[:2] = [left[0] + left[1]]
            continue
        kept = _verdict(objective, left[0])
        if kept is None:
            break
        found = left.pop(0)
        if not objective.permits(late):
            found = found.with_cause(_BELOW_THE_FLOOR)
        budget = _counted(budget, found, kept=kept)
    return replace(budget, waiting=tuple(left))


def _verdict(objective: Objective, found: OpenSlice) -> bool | None:
    """Return whether a slice kept the target; None if open roots may still decide it."""
    kept = objective.keeps(found.judged(objective.slice_s))
    if objective.target.statistic == "mean" and found.births.open and kept:
        return None
    return kept


def _counted(budget: ErrorBudget, found: OpenSlice, *, kept: bool) -> ErrorBudget:
    slice_s, part = budget.objective.slice_s, budget.objective.kept
    cause = "" if kept else ", ".join(found.causes)
    step = 0.0 if cause else _STEP * (-(1 - part) if kept else part)
    level = budget.clamped(budget.level + step)
    judged = JudgedSlice(
        slice=found.judged(slice_s),
        kept=kept,
        objective=budget.objective,
        level=level,
        cause=cause,
    )
    causes = dict(budget.causes)
    if cause:
        causes[cause] = causes.get(cause, 0) + 1
    return replace(
        budget,
        level=level,
        since=found.last + 1,
        judged=budget.judged + 1,
        missed=budget.missed + (not kept),
        born=budget.born + judged.slice.born,
        in_time=budget.in_time + judged.slice.in_time,
        periods=_with_slice(budget.periods, judged.slice.until_s, kept=kept),
        causes=causes,
        latest=(*budget.latest, judged),
    )


def _with_slice(
    periods: tuple[Period, ...], until_s: float, *, kept: bool
) -> tuple[Period, ...]:
    """Return *periods* with a slice that ended at *until_s*, without those of a day ago."""
    number = ceil(until_s / _PERIOD_S) - 1
    before, last = periods, Period(number)
    if periods and periods[-1].number == number:
        before, last = periods[:-1], periods[-1]
    counted = Period(number, last.judged + 1, last.missed + (not kept))
    oldest = number - _DAY_S / _PERIOD_S
    return (*(period for period in before if period.number > oldest), counted)

"""The time series of a run that charts show: one point per turn.

The number of points is bounded: in a long run, consecutive turns are merged into one point.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import fsum, isfinite, isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from sojourn.decide.target import Target
from sojourn.knowledge import News, measured_s
from sojourn.report.panel import Mark
from sojourn.report.turns import Turn

if TYPE_CHECKING:
    from sojourn.decide.objective import Slice

# A screen shows no more.
_MOST_POINTS = 10_000
# Charts with more colours are hard to read.
_MOST_OPERATORS = 8


class OperatorPoint(NamedTuple):
    """The processors and the backlog of an operator at the end of a turn; NaN is unknown."""

    given: float = nan
    """The allocation during the turn."""
    running: float = nan
    """Processors that can take records, as the engine reports."""
    wanted: float = nan
    """Processors that should run, as the engine reports."""
    called: float = nan
    """Processors that the load alone needs, by the policy's model."""
    backlog: float = nan

    @classmethod
    def together(cls, several: Iterable["OperatorPoint"]) -> "OperatorPoint":
        """Return the sum over several operators, ignoring unknown values."""
        return cls(*map(_sum, zip(*several, strict=True)))

    def highest(self, later: "OperatorPoint") -> "OperatorPoint":
        return OperatorPoint(*map(_most, self, later))


_NOTHING = OperatorPoint()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A turn, or several consecutive ones; unknown values are NaN, a gap in charts."""

    since_s: float
    at_s: float
    arrivals_per_s: float
    statistic: str
    """The statistic of *measured_s* and *expected_s*."""
    measured_s: float
    expected_s: float
    processors: int
    """Processors that ran, or the allocation if nothing was measured."""
    after: int
    """Processors after the decision of the turn."""
    outside: int = 0
    """The number of turns that missed the target."""
    turns: int = 1
    target: Target | None = None
    unusable: str | None = None
    """The reason why nothing is known."""
    commits: int = 0
    operators: Mapping[str, OperatorPoint] = field(default_factory=dict)

    @property
    def lasted_s(self) -> float:
        return self.at_s - self.since_s

    def then(self, later: "Point") -> "Point":
        """Return this and the *later* point as one: the mean load, the maximum of the rest."""
        known = [each for each in (self, later) if isfinite(each.arrivals_per_s)]
        lasted_s = fsum(each.lasted_s for each in known)
        same = self if self.statistic == later.statistic else later
        return replace(
            later,
            since_s=self.since_s,
            arrivals_per_s=fsum(e.arrivals_per_s * e.lasted_s for e in known) / lasted_s
            if lasted_s > 0
            else nan,
            measured_s=_most(same.measured_s, later.measured_s),
            expected_s=_most(same.expected_s, later.expected_s),
            processors=max(self.processors, later.processors),
            outside=self.outside + later.outside,
            turns=self.turns + later.turns,
            unusable=later.unusable if len(known) == 0 else None,
            commits=self.commits + later.commits,
            operators={
                name: self.operators.get(name, _NOTHING).highest(
                    later.operators.get(name, _NOTHING)
                )
                for name in {**self.operators, **later.operators}
            },
        )


class Course:
    """The points of a run, added turn by turn.

    A turn is compared with its own target, or with *target* if it has none. With *window_s*,
    only points of the last *window_s* seconds are kept; otherwise neighbours are merged as
    soon as there are more than *most* points.
    """

    def __init__(
        self, target: Target | None, *, window_s: float | None = None, most: int = _MOST_POINTS
    ) -> None:
        self.target = target
        self.points: deque[Point] = deque()
        self.marks: list[Mark] = []
        self.judged = 0
        """The number of slices that were judged."""
        self.missed: list[Slice] = []
        self.levels: list[tuple[float, float]] = []
        """When the level of the error budget changed, and the level from then on."""
        self.used_s = 0.0
        """Processor-seconds."""
        self._window_s, self._most, self._each = window_s, most, 1
        self._news = News()

    def add(self, turn: Turn) -> None:
        if self._news(turn.episode) and turn.done != "hold":
            self.marks.append(Mark(turn.episode.observation.at_s, turn.done))
        self.judged += len(turn.episode.judged)
        if turn.episode.judged:
            self.levels.append((turn.episode.observation.at_s, turn.episode.judged[-1].level))
        self.missed += [each.slice for each in turn.episode.judged if not each.kept]
        point = _point(turn, self.target)
        if not (turn.episode.looked and isfinite(point.since_s) and isfinite(point.at_s)):
            return  # an order by hand, without an observation
        self.used_s += point.processors * point.lasted_s
        if self.points and self.points[-1].turns < self._each:
            point = self.points.pop().then(point)
        self.points.append(point)
        if self._window_s is not None:
            while self.points[0].at_s < point.at_s - self._window_s:
                self.points.popleft()
        elif len(self.points) > self._most:
            # halve the number of points; from now on, each takes twice as many turns
            every = list(self.points)
            pairs = zip_longest(every[::2], every[1::2])
            self.points = deque(one.then(two) if two else one for one, two in pairs)
            self._each *= 2

    @property
    def edges(self) -> list[float]:
        """The start of each point, and the end of the last: one more than there are points."""
        last = [self.points[-1].at_s] if self.points else []
        return [*(each.since_s for each in self.points), *last]

    def misses(self, point: Point) -> bool:
        """Return whether a slice was missed at *point*; of a turn, if no slice was judged."""
        if not self.judged:
            return point.outside > 0
        return any(
            each.since_s < point.at_s and point.since_s < each.until_s for each in self.missed
        )

    def aim_at(self, target: Target) -> None:
        """Use another target from now on; measurements of another statistic are dropped."""
        # points keep no distributions, so another statistic cannot be computed
        if self.target and target.statistic != self.target.statistic:
            self.points = deque(replace(each, measured_s=nan) for each in self.points)
        self.target = target

    def operators(self) -> dict[str, list[OperatorPoint]]:
        """Return the points of each operator; of many, the smallest are summed as others."""
        # an operator is large by its highest number of processors, so that the selection is
        # the same for all points
        most: dict[str, float] = {}
        for each in self.points:
            for name, operator in each.operators.items():
                known = _most(operator.given, operator.running)
                most[name] = _most(most.get(name, 0.0), known)
        by_size = sorted(most, key=lambda name: -most[name])
        rest = by_size[_MOST_OPERATORS - 1 :] if len(most) > _MOST_OPERATORS else []
        curves = {
            name: [each.operators.get(name, _NOTHING) for each in self.points]
            for name in most
            if name not in rest
        }
        if rest:
            curves[f"{len(rest)} others"] = [
                OperatorPoint.together(p.operators[n] for n in rest if n in p.operators)
                for p in self.points
            ]
        return curves


def _point(turn: Turn, target: Target | None) -> Point:
    """Return the point of *turn*; its own target takes precedence over *target*."""
    target = turn.episode.target or target
    seen, decision, said = turn.episode.observation, turn.episode.decision, turn.expected
    statistic = target.statistic if target else turn.statistic
    took_s = measured_s(seen, statistic) if seen.usable else nan
    comparable = said is not None and said.statistic == statistic
    given, called = decision.before.allocation, decision.wish.wanted or {}
    there = seen.operators if seen.usable else {}
    operators = {
        name: OperatorPoint(
            given.get(name, nan), o.running, o.wanted, called.get(name, nan), o.backlog
        )
        for name, o in there.items()
    }
    operators |= {name: OperatorPoint(k) for name, k in given.items() if name not in there}
    running = [o.running for o in there.values()]
    return Point(
        since_s=seen.since_s,
        at_s=seen.at_s,
        arrivals_per_s=_known(seen.arrivals_per_s) if seen.usable else nan,
        statistic=statistic,
        measured_s=_known(took_s),
        expected_s=_known(said.seconds) if said is not None and comparable else nan,
        processors=int(sum(running or given.values())),
        after=turn.episode.running.processors,
        outside=int(target is not None and took_s > target.seconds),
        target=target,
        unusable=None if seen.usable else seen.reason,
        commits=seen.commits,
        operators=operators,
    )


def _sum(values: Iterable[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return fsum(known) if known else nan


def _most(one: float, two: float) -> float:
    return one if isnan(two) or one >= two else two


def _known(value: float) -> float:
    return value if isfinite(value) else nan

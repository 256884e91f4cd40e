"""What the page of a run draws of each turn: few numbers, because there may be many turns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite, nan

from sojourn.decide.target import Target
from sojourn.knowledge import measured_s
from sojourn.report.turns import Turn

__all__ = ["OperatorPoint", "Point", "gathered", "point", "then", "thinned"]

# Curves of more points are no finer on a screen, and make the page slow to open.
_MOST_POINTS = 1000
# More operators than these cannot be told apart at a glance.
_MOST_OPERATORS = 8


@dataclass(frozen=True, slots=True)
class OperatorPoint:
    """The processors and the backlog of an operator at the end of a turn; NaN if not known.

    *wanted* is what the engine was asked for, *called* what the load calls for by itself.
    """

    running: float = nan
    wanted: float = nan
    called: float = nan
    backlog: float = nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A turn, as curves show it; what is not known is NaN, which leaves a gap.

    *processors* are all that run, or where nothing was seen those that should.
    """

    since_s: float
    at_s: float
    arrivals_per_s: float
    measured_s: float
    expected_s: float
    processors: int
    outside: bool
    statistic: str = "mean"
    target: Target | None = None
    unusable: str | None = None
    commits: int = 0
    operators: Mapping[str, OperatorPoint] = field(default_factory=dict)

    @property
    def lasted_s(self) -> float:
        """How long the turn was."""
        return self.at_s - self.since_s


def point(turn: Turn, target: Target | None) -> Point:
    """Return what is drawn of *turn*: the statistic of its target, or of that of the run."""
    target = turn.episode.target or target
    seen, decision, said = turn.episode.observation, turn.episode.decision, turn.expected
    statistic = target.statistic if target else turn.statistic
    took_s = measured_s(seen, statistic) if seen.usable else nan
    comparable = said is not None and said.statistic == statistic
    called = decision.wanted or {}
    operators = {
        name: OperatorPoint(o.running, o.wanted, called.get(name, nan), o.backlog)
        for name, o in seen.operators.items()
        if seen.usable
    }
    running = [o.running for o in operators.values()] or decision.before.allocation.values()
    return Point(
        since_s=seen.since_s,
        at_s=seen.at_s,
        arrivals_per_s=_known(seen.arrivals_per_s) if seen.usable else nan,
        measured_s=_known(took_s),
        expected_s=_known(said.seconds) if said is not None and comparable else nan,
        processors=int(sum(running)),
        outside=target is not None and took_s > target.seconds,
        statistic=statistic,
        target=target,
        unusable=None if seen.usable else seen.reason,
        commits=seen.commits,
        operators=operators,
    )


def then(told: Iterable[object]) -> str:
    """Return what followed each other, each once.

    >>> then(["p95", "mean", "p95"])
    'p95, then mean'
    """
    return ", then ".join(dict.fromkeys(map(str, told)))


def gathered(points: Sequence[Point]) -> dict[str, list[OperatorPoint]]:
    """Return the points of each operator; of many, the smaller ones added up as others."""
    most: dict[str, float] = {}
    for each in points:
        for name, operator in each.operators.items():
            most[name] = max(most.get(name, 0.0), operator.running)
    told = set(most)
    if len(most) > _MOST_OPERATORS:
        told = set(sorted(most, key=lambda name: -most[name])[: _MOST_OPERATORS - 1])
    rest = [name for name in most if name not in told]
    curves = {
        name: [each.operators.get(name, OperatorPoint()) for each in points]
        for name in most
        if name in told
    }
    if rest:
        curves[f"{len(rest)} others"] = [_together(each, rest) for each in points]
    return curves


def thinned(values: Sequence[float], most: int = _MOST_POINTS) -> list[int]:
    """Return which values to draw: all, or of many the highs, the lows and the gaps.

    >>> thinned([1, 2, 9, 2, 1, 0, 1, 2], most=5)
    [0, 2, 5, 7]
    """
    number = len(values)
    if number <= most:
        return list(range(number))
    parts = (most - 2) // 3
    kept = {0, number - 1}
    for part in range(parts):
        within = range(part * number // parts, (part + 1) * number // parts)
        known = [n for n in within if isfinite(values[n])]
        if known:
            kept |= {min(known, key=values.__getitem__), max(known, key=values.__getitem__)}
        if len(known) < len(within):
            kept.add(next(n for n in within if not isfinite(values[n])))
    return sorted(kept)


def _together(each: Point, names: Iterable[str]) -> OperatorPoint:
    there = [each.operators[name] for name in names if name in each.operators]
    return OperatorPoint(
        _sum(o.running for o in there),
        _sum(o.wanted for o in there),
        _sum(o.called for o in there),
        _sum(o.backlog for o in there),
    )


def _sum(values: Iterable[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return fsum(known) if known else nan


def _known(value: float) -> float:
    return value if isfinite(value) else nan

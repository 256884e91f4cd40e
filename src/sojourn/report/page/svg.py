"""Panels as SVG: scales, ticks and paths of curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10

from sojourn.report.panel import Panel, Series
from sojourn.report.text import number

# More points per curve are not visible on a screen, and the page would open slowly.
_MOST_POINTS = 1000
# The top of a linear scale, relative to the highest value.
_ROOM = 1.08
_TIMES_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
)  # fmt: skip
_MOST_TIMES, _DAY_S = 9, 86_400
# Pixels per tick of an axis, and the length of a stroke at the bottom.
_TICK, _STROKE = 22, 8
_SIGNS = {
    "measured": "●", "expected": "━", "target": "╌", "commits": "╵", "outside": "▲",
    "running": "■", "wanted": "━", "called": "┅",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A mapping of values to pixels: *low* is at *below*, *high* at *above*."""

    low: float
    high: float
    below: float
    above: float
    ticks: tuple[float, ...] = ()
    powers: bool = False
    """Whether the scale is logarithmic."""

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        *,
        height: float,
        ticks: int = 4,
        powers: bool = False,
        whole: bool = False,
    ) -> "Scale":
        """Return a scale from 0 to the highest of *values*, with at most *ticks* ticks.

        With *powers* it is logarithmic, from the power of ten below the lowest value; if
        *whole*, ticks are integers.

        >>> Scale.of([3, 11], height=100).ticks
        (0.0, 5.0, 10.0)
        """
        above_0 = [value for value in values if isfinite(value) and value > 0]
        if powers:
            first, last = floor(log10(min(above_0))), ceil(log10(max(above_0)))
            every = ceil((last - first) / 6)
            return cls(
                low=10.0**first,
                high=10.0**last,
                below=height,
                above=0.0,
                ticks=tuple(10.0**n for n in range(first, last + 1, every)),
                powers=True,
            )
        high = _ROOM * max(above_0, default=1.0)
        step = max(_step(high, ticks), 1.0) if whole else _step(high, ticks)
        # without the digits that come of adding steps up
        marks = tuple(float(f"{step * n:.12g}") for n in range(floor(high / step) + 1))
        return cls(low=0.0, high=high, below=height, above=0.0, ticks=marks)

    @classmethod
    def across(cls, since_s: float, until_s: float, left: float, right: float) -> "Scale":
        until_s = until_s if until_s > since_s else since_s + 1.0
        ticks = time_ticks(since_s, until_s)
        return cls(low=since_s, high=until_s, below=left, above=right, ticks=ticks)

    def at(self, value: float) -> float:
        if self.powers:
            part = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(self.below + part * (self.above - self.below), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A panel as SVG, *top* pixels from the top of the figure."""

    title: str
    summary: str
    top: float
    ticks: tuple[tuple[float, str], ...]
    """Position and label of each."""
    paths: tuple[tuple[str, str], ...]
    """Class and path of each curve."""
    key: tuple[tuple[str, str, str], ...]
    """Class, symbol and name of each legend entry."""


def draw(panel: Panel, across: Scale, *, top: float, height: float) -> Drawn:
    """Return *panel* as SVG, with a vertical scale that fits its values."""
    up = Scale.of(
        [value for series in panel.series if series.kind != "ticks" for value in series.y],
        height=height,
        ticks=max(2, min(5, int(height // _TICK))),
        powers=panel.log_y,
        whole=panel.whole,
    )
    paths = [path for series in panel.series for path in _paths(series, across, up)]
    several = panel.series if len(panel.series) > 1 else ()
    return Drawn(
        title=panel.title,
        summary=panel.summary,
        top=top,
        ticks=tuple((up.at(tick), number(tick)) for tick in up.ticks),
        paths=tuple((kind, path) for kind, path in paths if path),
        key=tuple((each.role, _SIGNS[each.role], each.label) for each in several),
    )


def _paths(series: Series, across: Scale, up: Scale) -> list[tuple[str, str]]:
    role, values = series.role, series.y
    edges = [float(x) for x in series.x]
    centres = [(since + until) / 2 for since, until in pairwise(edges)]
    if series.kind in ("steps", "area"):
        return [(role, steps(across, up, edges, values, filled=series.kind == "area"))]
    if series.kind == "ticks":
        seen = [x for x, value in zip(centres, values, strict=True) if isfinite(value)]
        foot = f"{up.below:g}v-{_STROKE}"
        return [(role, "".join(f"M{across.at(x):g} {foot}" for x in seen))]
    places = [
        (across.at(centres[n]), up.at(values[n])) if isfinite(values[n]) else None
        for n in thinned(values)
    ]
    known = [place for place in places if place is not None]
    if role == "outside":
        return [(role, "".join(f"M{x - 4:g} {y + 3:g}l4-7 4 7z" for x, y in known))]
    # dots are lines of length 0 with round ends
    dots = (f"{role} dots", "".join(f"M{x:g} {y:g}h0" for x, y in known))
    return [(f"{role} line", joined(places)), dots] if series.kind == "lines" else [dots]


def steps(
    across: Scale, up: Scale, edges: Sequence[float], values: Sequence[float], *, filled: bool
) -> str:
    """Return the path of a step function, with gaps where values are NaN."""
    path: list[str] = []
    drawing = False
    kept = thinned(values)
    close = f"V{up.below:g}Z" if filled else ""
    for n, later in zip(kept, [*kept[1:], len(values)], strict=True):
        if not isfinite(values[n]):
            path.append(close if drawing else "")
            drawing = False
            continue
        if not drawing:
            foot = up.below if filled else up.at(values[n])
            path.append(f"M{across.at(edges[n]):g} {foot:g}")
        path.append(f"V{up.at(values[n]):g}H{across.at(edges[later]):g}")
        drawing = True
    return "".join([*path, close if drawing else ""])


def joined(places: Sequence[tuple[float, float] | None]) -> str:
    """Return the path through points, with gaps at None."""
    path, drawing = [], False
    for place in places:
        if place is not None:
            path.append(f"{'L' if drawing else 'M'}{place[0]:g} {place[1]:g}")
        drawing = place is not None
    return "".join(path)


def shading(panel: Panel, across: Scale, top: float, bottom: float) -> str:
    """Return the path around the spans of *panel*; spans within a pixel are joined."""
    spans: list[list[float]] = []
    for since, until in ((across.at(a), across.at(b)) for a, b in panel.spans):
        if spans and since - spans[-1][1] < 1:
            spans[-1][1] = until
        else:
            spans.append([since, until])
    return "".join(f"M{a:g} {top:g}H{b:g}V{bottom:g}H{a:g}Z" for a, b in spans)


def time_ticks(since_s: float, until_s: float) -> tuple[float, ...]:
    """Return a few round times from *since_s* to *until_s*.

    >>> time_ticks(0, 2400)
    (0, 300, 600, 900, 1200, 1500, 1800, 2100, 2400)
    """
    span_s = until_s - since_s
    days = _DAY_S * ceil(span_s / _MOST_TIMES / _DAY_S)
    step = next((s for s in _TIMES_S if span_s / s < _MOST_TIMES), days)
    first, last = ceil(since_s / step), floor(until_s / step)
    return tuple(step * n for n in range(first, last + 1)) or (since_s,)


def thinned(values: Sequence[float], most: int = _MOST_POINTS) -> list[int]:
    """Return the indices of values to draw: all, or the extremes and gaps of each stretch.

    >>> thinned([1, 2, 9, 2, 1, 0, 1, 2], most=5)
    [0, 2, 5, 7]
    """
    total = len(values)
    if total <= most:
        return list(range(total))
    parts = (most - 2) // 3
    kept = {0, total - 1}
    for part in range(parts):
        within = range(part * total // parts, (part + 1) * total // parts)
        known = [n for n in within if isfinite(values[n])]
        if known:
            kept |= {min(known, key=values.__getitem__), max(known, key=values.__getitem__)}
        if len(known) < len(within):
            kept.add(next(n for n in within if not isfinite(values[n])))
    return sorted(kept)


def _step(high: float, most: int) -> float:
    """Return the smallest round step that fits at most *most* times into *high*."""
    power = 10.0 ** floor(log10(high / most))
    return next((n * power for n in (1, 2, 5) if high // (n * power) <= most), 10 * power)

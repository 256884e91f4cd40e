"""Curves and axes as parts of an SVG picture: text alone, so that no library is needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

from sojourn.report.page.points import thinned

__all__ = ["Scale", "dots", "joined", "plain", "steps", "time_ticks", "wedges"]

# Values that differ by more are drawn by powers of ten.
_FAR = 30
# Above the highest value.
_ROOM = 1.08
_TIMES_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
)  # fmt: skip
_MOST_TIMES, _DAY_S = 9, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where values are in a picture: from *low*, at *below*, up to *high*, at *above*."""

    low: float
    high: float
    below: float
    above: float
    ticks: tuple[float, ...] = ()
    powers: bool = False

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
        """Return the scale from 0 up to all of *values*, with no more *ticks* above it.

        Latencies may be far apart, and are then drawn by *powers* of ten. What is *whole*
        has no ticks between.

        >>> Scale.of([3, 11], height=100).ticks
        (0.0, 5.0, 10.0)
        """
        known = [value for value in values if isfinite(value)]
        above_0 = [value for value in known if value > 0]
        if powers and above_0 and max(above_0) > _FAR * min(above_0):
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
        marks = tuple(_short(step * n) for n in range(floor(high / step) + 1))
        return cls(low=0.0, high=high, below=height, above=0.0, ticks=marks)

    @classmethod
    def across(cls, since_s: float, until_s: float, left: float, right: float) -> "Scale":
        """Return the scale of time."""
        until_s = until_s if until_s > since_s else since_s + 1.0
        ticks = time_ticks(since_s, until_s)
        return cls(low=since_s, high=until_s, below=left, above=right, ticks=ticks)

    def at(self, value: float) -> float:
        """Return where *value* is."""
        if self.powers:
            part = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(self.below + part * (self.above - self.below), 1)


def steps(
    across: Scale, up: Scale, edges: Sequence[float], values: Sequence[float], *, filled: bool
) -> str:
    """Return the path that keeps each value from its edge to the next; gaps stay empty."""
    path: list[str] = []
    drawing = False
    kept = thinned(values)
    for n, later in zip(kept, [*kept[1:], len(values)], strict=True):
        if not isfinite(values[n]):
            if drawing and filled:
                path.append(f"V{up.below:g}Z")
            drawing = False
            continue
        if not drawing:
            path.append(
                f"M{across.at(edges[n]):g} {up.below if filled else up.at(values[n]):g}"
            )
        path.append(f"V{up.at(values[n]):g}H{across.at(edges[later]):g}")
        drawing = True
    if drawing and filled:
        path.append(f"V{up.below:g}Z")
    return "".join(path)


def dots(across: Scale, up: Scale, times: Sequence[float], values: Sequence[float]) -> str:
    """Return the path of a dot for each value: of lines of no length, with round ends."""
    at = _places(across, up, times, values)
    return "".join(f"M{x:g} {y:g}h0" for x, y in filter(None, at))


def joined(across: Scale, up: Scale, times: Sequence[float], values: Sequence[float]) -> str:
    """Return the path from value to value, broken at gaps."""
    path, drawing = [], False
    for place in _places(across, up, times, values):
        if place is not None:
            path.append(f"{'L' if drawing else 'M'}{place[0]:g} {place[1]:g}")
        drawing = place is not None
    return "".join(path)


def wedges(across: Scale, up: Scale, times: Sequence[float], values: Sequence[float]) -> str:
    """Return the path of a small triangle at each value."""
    at = _places(across, up, times, values)
    return "".join(f"M{x - 4:g} {y + 3:g}l4-7 4 7z" for x, y in filter(None, at))


def time_ticks(since_s: float, until_s: float) -> tuple[float, ...]:
    """Return few round times from *since_s* until *until_s*.

    >>> time_ticks(0, 2400)
    (0, 300, 600, 900, 1200, 1500, 1800, 2100, 2400)
    """
    span_s = until_s - since_s
    days = _DAY_S * ceil(span_s / _MOST_TIMES / _DAY_S)
    step = next((s for s in _TIMES_S if span_s / s < _MOST_TIMES), days)
    first, last = ceil(since_s / step), floor(until_s / step)
    return tuple(step * n for n in range(first, last + 1)) or (since_s,)


def plain(text: object) -> str:
    """Return *text* for HTML: it may be anything that a file or an engine had to say.

    >>> plain('a < "b"')
    'a &lt; &quot;b&quot;'
    """
    kept = (letter if letter.isprintable() or letter == "\n" else " " for letter in str(text))
    return escape("".join(kept))


def _places(
    across: Scale, up: Scale, times: Sequence[float], values: Sequence[float]
) -> list[tuple[float, float] | None]:
    return [
        (across.at(times[n]), up.at(values[n])) if isfinite(values[n]) else None
        for n in thinned(values)
    ]


def _step(high: float, most: int) -> float:
    """Return the least round number that goes into *high* no more than *most* times."""
    power = 10.0 ** floor(log10(high / most))
    return next((n * power for n in (1, 2, 5) if high // (n * power) <= most), 10 * power)


def _short(value: float) -> float:
    """Return *value* without the digits that come of adding steps up."""
    return float(f"{value:.12g}")

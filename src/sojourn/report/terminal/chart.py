"""Charts over time for a terminal, drawn with block characters."""

from collections.abc import Callable, Sequence
from math import ceil, isfinite, nan
from statistics import fmean

from rich.text import Text

from sojourn.report.panel import Panel

_BLOCKS = " ▁▂▃▄▅▆▇█"
_STEPS = len(_BLOCKS) - 1
_LINE = "┄"
# Latencies above this multiple of the limit are cut off, to keep the others readable.
_TIMES_LIMIT = 2.5
_STYLES = {"load": "cyan", "measured": "green", "running": "blue"}


def draw_panel(
    panel: Panel, *, since_s: float, lasts_s: float, width: int, height: int
) -> list[Text]:
    """Return the lines of a chart of the first series of *panel*, from *since_s* on.

    If the panel has a level, it is drawn as the limit, and the chart has one more line.
    """
    series, limit = panel.series[0], next(iter(panel.levels.values()), None)
    ends_s = (float(at_s) - since_s for at_s in series.x[1:])
    points = list(zip(ends_s, series.y, strict=True))
    values = columns(points, lasts_s, width, max if series.role == "running" else fmean)
    known = [value for value in values if isfinite(value)]
    top = max(known, default=0.0) or 1.0
    if limit is not None:
        height += 1
        top = min(max(*known, 1.3 * limit, 0.0), _TIMES_LIMIT * limit)
    style = _STYLES.get(series.role, "")
    return draw_columns(values, height=height, top=top, style=style, limit=limit)


def columns(
    points: Sequence[tuple[float, float]],
    lasts_s: float,
    width: int,
    summed: Callable[[list[float]], float],
) -> list[float]:
    """Return *width* numbers, each aggregated by *summed* from the values of its interval.

    *points* are pairs of time and value; NaN values are ignored. A value holds for the time
    before it: an interval without values takes the value of the next, NaN if there is none.

    >>> columns([(1, 2.0), (2, 4.0), (7, 6.0)], 12, 4, max)
    [4.0, 6.0, 6.0, nan]
    """
    parts: list[list[float]] = [[] for _ in range(width)]
    for at_s, value in points:
        if isfinite(value):
            parts[max(0, min(width - 1, ceil(at_s / lasts_s * width) - 1))].append(value)
    made: list[float] = []
    for part in reversed(parts):
        after = made[-1] if made else nan
        made.append(summed(part) if part else after)
    return made[::-1]


def draw_columns(
    values: Sequence[float],
    *,
    height: int,
    top: float,
    style: str = "",
    limit: float | None = None,
    over: str = "red",
) -> list[Text]:
    """Return the lines of the chart from top to bottom; NaN is left out.

    Values above *top* are cut off. Columns above *limit* have the style *over*, and a line is
    drawn at the limit.

    >>> for line in draw_columns([1, 2, 3, 4, float("nan")], height=2, top=4):
    ...     print(line.plain.rstrip())
      ▄█
    ▄███
    """
    part = top / (height * _STEPS)
    lines = [Text(no_wrap=True) for _ in range(height)]
    at = None if limit is None else height - 1 - min(height - 1, int(limit / top * height))
    for value in values:
        steps = 0
        if isfinite(value) and value > 0:
            steps = max(1, min(height * _STEPS, round(value / part)))
        coloured = over if limit is not None and value > limit else style
        for number, line in enumerate(lines):
            block = _BLOCKS[max(0, min(_STEPS, steps - (height - 1 - number) * _STEPS))]
            if block == " " and number == at:
                line.append(_LINE, "dim")
            else:
                line.append(block, coloured)
    return lines

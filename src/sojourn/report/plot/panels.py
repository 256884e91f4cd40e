"""Panels, drawn with matplotlib: side by side, or stacked over the same time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sojourn.errors import BadFile, BadInput
from sojourn.registry import optional
from sojourn.report.panel import Panel, Series

_COLOURS = ("#1d3557", "#e07a5f", "#81b29a", "#9aa5b1")
_STACKED = (
    "#3d5a80", "#98c1d9", "#e9c46a", "#f4a261", "#81b29a", "#b5838d", "#6d6875", "#a3b18a",
)  # fmt: skip
_LEVELS, _MARKS, _SPANS, _GRID = "#c1121f", "#6d6875", "#dde1e6", "#eceff3"
# Colours that remain distinct with colour blindness (Okabe and Ito).
_SEVERAL = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6d3b", "#555555",
)  # fmt: skip
_ROLES: Mapping[str, Mapping[str, Any]] = {
    "load": {"color": "#1d3557", "lw": 1.3},
    "expected": {"color": "#e07a5f", "lw": 1.6},
    "measured": {"color": "#3d5a80", "marker": ".", "ms": 3.5, "lw": 0.6},
    "target": {"color": _LEVELS, "ls": "--", "lw": 1.2},
    "outside": {"color": _LEVELS, "marker": "^", "ms": 4, "zorder": 4},
    "commits": {"color": "#9aa5b1"},
}
# These remain distinct with colour blindness, too.
_DONE = {"up": "#c1121f", "down": "#2a9d8f", "move": "#8338ec", "note": _MARKS}
_DONE |= {"added": _DONE["up"], "removed": _DONE["down"]}
# Seconds in a unit, its name, and the smallest range, in units, that is shown in it.
_UNITS = ((86400.0, "days", 3), (3600.0, "hours", 3), (60.0, "minutes", 3), (1.0, "seconds", 0))
# With more marks, only their upper ends are drawn.
_MOST_MARKS = 60


def figure(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib has no types
    """Return an empty figure of this width and height in inches.

    Raise `BadInput` if matplotlib is missing.
    """
    with optional("plots need", "plot", BadInput):
        from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import
    return Figure(figsize=(width, height), layout="constrained")


def save(picture: Any, path: Path) -> None:  # noqa: ANN401
    """Write *picture* to *path*; its suffix determines the format.

    Raise `BadFile` if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise BadFile(
            str(path),
            f"cannot be written: {error}",
            "choose a path that ends in .png, .svg or .pdf",
        ) from error


def colour(number: int) -> str:
    return _SEVERAL[number % len(_SEVERAL)]


def draw_panels(panels: Sequence[Panel], path: Path) -> None:
    """Write *panels* side by side to *path*."""
    picture = figure(6.5 * len(panels), 4.2)
    row = picture.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(row, panels, strict=True):
        _draw(axes, panel)
        axes.set(title=panel.title, xlabel=panel.x_label)
        axes.legend(frameon=False)
    save(picture, path)


def draw_rows(picture: Any, panels: Sequence[Panel]) -> Any:  # noqa: ANN401 - matplotlib has no types
    """Draw *panels* one above the other into *picture*, and return their axes."""
    ratios = [panel.height for panel in panels]
    rows = picture.subplots(len(panels), sharex=True, gridspec_kw={"height_ratios": ratios})
    known = [x for panel in panels for each in panel.series for x in map(float, each.x)]
    since, until = min(known), max(known)
    # the largest unit of which the whole range has enough
    scale, unit, _ = next(u for u in _UNITS if until - since >= u[0] * u[2])
    for number, (axes, panel) in enumerate(zip(rows, panels, strict=True)):
        _draw(axes, panel, scale=scale, named=number == 0)
        axes.grid(axis="y", color=_GRID, lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        stacked = any(each.kind == "stack" for each in panel.series)
        if axes.get_legend_handles_labels()[1]:
            # the legend lists stacked series from top to bottom
            axes.legend(
                frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), reverse=stacked
            )
    rows[-1].set_xlim(since / scale, until / scale)
    rows[-1].set_xlabel(unit)
    picture.align_ylabels()
    return rows


def _draw(axes: Any, panel: Panel, *, scale: float = 1.0, named: bool = True) -> None:  # noqa: ANN401
    below: NDArray[np.float64] | float = 0.0
    for number, series in enumerate(panel.series):
        kind = series.kind or panel.kind
        if kind == "bars":
            _bars(axes, series, number, len(panel.series))
        elif kind == "stack":
            below = _layer(axes, series, number, below, scale)
        elif panel.over_time:
            _over_time(axes, series, kind, number, scale)
        else:
            axes.errorbar(
                series.x,
                series.y,
                yerr=series.error or None,
                marker="o",
                markersize=4,
                ls="-" if kind == "lines" else "",
                capsize=3,
                color=_COLOURS[number % len(_COLOURS)],
                label=series.label,
            )
    for number, (label, level) in enumerate(panel.levels.items()):
        axes.axhline(level, color=_LEVELS, ls=("--", ":")[number % 2], label=label)
    _mark(axes, panel, scale, named=named)
    if panel.diagonal:
        most = max(max(map(float, series.x)) for series in panel.series)
        axes.plot((0, most), (0, most), color=_MARKS, ls=":", label="equal")
    if panel.log_x:
        axes.set_xscale("log")
    if panel.whole:
        axes.locator_params(axis="y", integer=True)
    axes.set_ylabel(panel.y_label)
    if panel.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _bars(axes: Any, series: Series, number: int, of: int) -> None:  # noqa: ANN401
    width, colour = 0.8 / of, _COLOURS[number % len(_COLOURS)]
    places = [place + (number - (of - 1) / 2) * width for place in range(len(series.x))]
    error = series.error or None
    axes.bar(places, series.y, width, yerr=error, capsize=3, color=colour, label=series.label)
    axes.set_xticks(range(len(series.x)), series.x)


def _layer(
    axes: Any,  # noqa: ANN401
    series: Series,
    number: int,
    below: NDArray[np.float64] | float,
    scale: float,
) -> NDArray[np.float64]:
    """Draw *series* on top of *below*, and return its upper edge."""
    above: NDArray[np.float64] = np.nan_to_num(np.array(series.y, float)) + below
    edges, colour = np.array(series.x, float) / scale, _STACKED[number % len(_STACKED)]
    # filled down to 0, but behind the layers below
    axes.stairs(
        above, edges, fill=True, color=colour, label=series.label, zorder=1 - number / 100
    )
    axes.set_ylim(bottom=0, top=1.08 * max(float(above.max()), 1.0))
    return above


def _over_time(axes: Any, series: Series, kind: str, number: int, scale: float) -> None:  # noqa: ANN401
    x, y = np.array(series.x, float) / scale, np.array(series.y, float)
    # of series without a role, the first is drawn on top, in a thicker line
    other = {"color": colour(number), "lw": 1.3 if number else 2.2}
    style = {"label": series.label, "zorder": 3 - number / 100}
    style |= _ROLES.get(series.role, other)
    if kind == "steps":
        axes.stairs(y, x, baseline=None, **style)
        return
    centres = (x[1:] + x[:-1]) / 2 if len(x) > len(y) else x
    if kind == "ticks":
        place = axes.get_xaxis_transform()
        seen = centres[~np.isnan(y)]
        axes.vlines(seen, 0, 0.05, transform=place, lw=1, **style)
        return
    dense = {"ms": 1.5} if kind == "points" and series.role == "measured" else {}
    line = {} if kind == "lines" else {"ls": ""}
    axes.plot(centres, y, **style | dense | line)


def _mark(axes: Any, panel: Panel, scale: float, *, named: bool) -> None:  # noqa: ANN401
    """Draw a line at each mark, dotted for recommendations."""
    low = 0.0 if len(panel.marks) <= _MOST_MARKS else 0.94
    for text in dict.fromkeys(mark.text for mark in panel.marks):
        recommended = " " in text
        axes.vlines(
            [mark.x / scale for mark in panel.marks if mark.text == text],
            low,
            1.0,
            transform=axes.get_xaxis_transform(),
            color=_DONE.get(text.partition(" ")[0], _MARKS),
            lw=1.3 if recommended else 1.0,
            ls=":" if recommended else "-",
            alpha=0.8,
            label=text if text and named else None,
        )
    for number, (since, until) in enumerate(panel.spans):
        axes.axvspan(
            since / scale,
            until / scale,
            color=_SPANS,
            lw=0,
            zorder=0,
            label="unusable" if named and number == 0 else None,
        )

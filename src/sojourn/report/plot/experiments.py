"""Pictures of experiments: what their panels say, drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sojourn.report.panel import Panel, Series
from sojourn.report.plot.explanation import figure, save

__all__ = ["draw_panels"]

_COLOURS = ("#1d3557", "#e07a5f", "#81b29a", "#9aa5b1")
_LEVELS, _MARKS = "#c1121f", "#6d6875"


def draw_panels(panels: Sequence[Panel], path: Path) -> None:
    """Write *panels* side by side to *path*, in the format that its ending names.

    Raise `BadInput` if matplotlib is missing, `BadFile` if the file cannot be written.
    """
    picture = figure(6.5 * len(panels), 4.2)
    for axes, panel in zip(
        picture.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        _draw(axes, panel)
    save(picture, path)


def _draw(axes: Any, panel: Panel) -> None:  # noqa: ANN401 - matplotlib has no types
    for number, series in enumerate(panel.series):
        colour = _COLOURS[number % len(_COLOURS)]
        if panel.kind == "bars":
            _bars(axes, series, number, len(panel.series), colour)
        else:
            axes.errorbar(
                series.x,
                series.y,
                yerr=series.error or None,
                marker="o",
                markersize=4,
                ls="-" if panel.kind == "lines" else "",
                capsize=3,
                color=colour,
                label=series.label,
            )
    for number, (label, level) in enumerate(panel.levels.items()):
        axes.axhline(level, color=_LEVELS, ls=("--", ":")[number % 2], label=label)
    for mark in panel.marks:
        axes.axvline(mark, color=_MARKS, lw=1)
    if panel.diagonal:
        most = max(max(map(float, series.x)) for series in panel.series)
        axes.plot((0, most), (0, most), color=_MARKS, ls=":", label="equal")
    if panel.log_x:
        axes.set_xscale("log")
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _bars(axes: Any, series: Series, number: int, of: int, colour: str) -> None:  # noqa: ANN401
    width = 0.8 / of
    places = [place + (number - (of - 1) / 2) * width for place in range(len(series.x))]
    error = series.error or None
    axes.bar(places, series.y, width, yerr=error, capsize=3, color=colour, label=series.label)
    axes.set_xticks(range(len(series.x)), series.x)

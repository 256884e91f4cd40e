"""The plot of a comparison: the trade-off, and the first seed of each policy over time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn.report.comparison import Outcome, dominating
from sojourn.report.panel import Panel, Series, far_apart
from sojourn.report.plot.panels import colour, draw_rows, figure, save

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage

_FRONT, _GRID = "#9aa5b1", "#eceff3"


def draw_comparison(stage: "Stage", outcomes: Sequence[Outcome], path: Path) -> None:
    picture = figure(14, 6.6)
    left, right = picture.subfigures(1, 2, width_ratios=(5, 7))
    colours = {outcome.policy: colour(n) for n, outcome in enumerate(outcomes)}
    trade = left.subplots()
    _draw_trade_off(trade, outcomes, colours)
    trade.grid(color=_GRID, lw=0.8)
    trade.set_axisbelow(True)
    trade.spines[["top", "right"]].set_visible(False)
    first, *_ = draw_rows(right, _panels(stage, outcomes))
    seeds = len(outcomes[0].scores)
    paused = f", changes pause for {stage.pause_s:g} s" if stage.pause_s else ""
    picture.suptitle(f"{stage.topology.name}: {stage.target}{paused}")
    hollow = "; hollow: dominated" if any(dominating(o, outcomes) for o in outcomes) else ""
    trade.set_title(f"the trade-off, {seeds} seed{'s' * (seeds != 1)}{hollow}", fontsize=10)
    first.set_title("over time, the first seed", fontsize=10)
    save(picture, path)


def _draw_trade_off(
    axes: Any,  # noqa: ANN401 - matplotlib has no types
    outcomes: Sequence[Outcome],
    colours: Mapping[str, str],
) -> None:
    """Plot missed slices over processor-hours, with the Pareto front as a line."""
    front, points = [], []
    for outcome in outcomes:
        hours, kept = outcome.estimate("processor_hours"), outcome.estimate("kept")
        dominated = bool(dominating(outcome, outcomes))
        point = hours.value, 100 * (1 - kept.value)
        half = 100 * kept.half_width  # clipped to 0 and 100 %
        axes.errorbar(
            *point,
            xerr=None if isnan(hours.half_width) else hours.half_width,
            yerr=None if isnan(half) else [[min(half, point[1])], [min(half, 100 - point[1])]],
            fmt="o",
            color=colours[outcome.policy],
            mfc="white" if dominated else None,
            ms=7,
            capsize=3,
            lw=1.2,
            zorder=3,
        )
        points.append((point, outcome.policy))
        if not dominated:
            front.append(point)
    axes.plot(*zip(*sorted(front), strict=True), color=_FRONT, lw=1.4, zorder=1)
    axes.set(xlabel="processor-hours", ylabel="slices in which the target is missed, %")
    axes.margins(x=0.18, y=0.1)
    high = max(axes.get_ylim()[1], 1.0)
    axes.set_ylim(-0.04 * high, high)
    axes.text(0.01, 0.055, "↙ better", transform=axes.transAxes, color=_FRONT)
    _name(axes, points, colours)


def _name(
    axes: Any,  # noqa: ANN401
    points: list[tuple[tuple[float, float], str]],
    colours: Mapping[str, str],
) -> None:
    """Write names beside points, without overlap."""
    width, height = np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
    named: list[tuple[float, float]] = []
    for (x, y), name in sorted(points):
        near = sum(abs(x - u) < 0.2 * width and abs(y - v) < 0.04 * height for u, v in named)
        axes.annotate(
            name,
            (x, y),
            xytext=(6, 6 + 13 * near),
            textcoords="offset points",
            color=colours[name],
            fontsize=10,
            fontweight="bold",
        )
        named.append((x, y))


def _panels(stage: "Stage", outcomes: Sequence[Outcome]) -> list[Panel]:
    times_s, rates = zip(*stage.rates.points, strict=True)
    latency, processors = [], []
    for outcome in outcomes:
        slices_s = outcome.slices_s[0]
        edges = np.minimum(
            np.arange(len(slices_s) + 1) * stage.objective.slice_s, stage.lasts_s
        )
        latency.append(Series(label=outcome.policy, x=edges.tolist(), y=slices_s.tolist()))
        since_s, numbers = zip(*outcome.processors, strict=True)
        until_s = max(stage.lasts_s, since_s[-1])
        processors.append(Series(label="", x=[*since_s, until_s], y=numbers))
    target_s = stage.target.seconds
    drawn = [target_s, *(value for series in latency for value in series.y)]
    return [
        _panel("roots per second", [Series(label="", x=times_s, y=rates, role="load")], 2),
        replace(
            _panel(f"{stage.target.statistic}, seconds", latency, 4),
            levels={str(stage.target): target_s},
            log_y=far_apart(drawn),
        ),
        _panel("processors", processors, 3),
    ]


def _panel(y_label: str, series: Sequence[Series], height: float) -> Panel:
    return Panel(
        kind="steps" if len(series[0].x) > len(series[0].y) else "lines",
        title="",
        x_label="time",
        y_label=y_label,
        series=tuple(series),
        height=height,
        whole=y_label == "processors",
        over_time=True,
    )

"""The picture of a comparison: the trade-off, and what each policy did with the first seed."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.rehearsal import Stage
from sojourn.report.comparison import Outcome, dominating
from sojourn.report.plot.explanation import figure, save

__all__ = ["draw_comparison"]

_LOAD, _TARGET, _FRONT, _GRID = "#1d3557", "#c1121f", "#9aa5b1", "#eceff3"
# Told apart also by those who see red and green alike (Okabe and Ito).
_COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6d3b", "#555555",
)  # fmt: skip
_UNITS = ((86400.0, "days", 3), (3600.0, "hours", 3), (60.0, "minutes", 3), (1.0, "seconds", 0))
# Latencies that differ by more are drawn by powers of ten.
_FAR = 30


def draw_comparison(stage: Stage, outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the picture to *path*, in the format that its ending names.

    Raise `BadInput` if matplotlib is missing, `BadFile` if the file cannot be written.
    """
    picture = figure(14, 6.6)
    left, right = picture.subfigures(1, 2, width_ratios=(5, 7))
    colours = {
        outcome.policy: _COLOURS[number % len(_COLOURS)]
        for number, outcome in enumerate(outcomes)
    }
    trade = left.subplots()
    _draw_trade_off(trade, outcomes, colours)
    load, latency, processors = right.subplots(
        3, sharex=True, gridspec_kw={"height_ratios": (2, 4, 3)}
    )
    scale, unit, _ = next(u for u in _UNITS if stage.lasts_s >= u[0] * u[2])
    _draw_load(load, stage, scale)
    _draw_latency(latency, stage, outcomes, colours, scale)
    _draw_processors(processors, stage, outcomes, colours, scale)
    for axes in (trade, load, latency, processors):
        axes.grid(axis="both" if axes is trade else "y", color=_GRID, lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    latency.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    processors.set_xlim(0, stage.lasts_s / scale)
    processors.set_xlabel(unit)
    right.align_ylabels()
    seeds = len(outcomes[0].scores)
    paused = f", changes pause for {stage.pause_s:g} s" if stage.pause_s else ""
    picture.suptitle(f"{stage.topology.name}: {stage.target}{paused}")
    hollow = "; hollow: dominated" if any(dominating(o, outcomes) for o in outcomes) else ""
    trade.set_title(f"the trade-off, {seeds} seed{'s' * (seeds != 1)}{hollow}", fontsize=10)
    load.set_title("over time, the first seed", fontsize=10)
    save(picture, path)


def _draw_trade_off(
    axes: Any,  # noqa: ANN401 - matplotlib has no types
    outcomes: Sequence[Outcome],
    colours: Mapping[str, str],
) -> None:
    """Draw time outside over processor-hours, with the front as a line."""
    front, points = [], []
    for outcome in outcomes:
        hours, outside = outcome.estimate("processor_hours"), outcome.estimate("outside")
        dominated = bool(dominating(outcome, outcomes))
        point = hours.value, 100 * outside.value
        axes.errorbar(
            *point,
            xerr=None if isnan(hours.half_width) else hours.half_width,
            # less than none of the time cannot be
            yerr=None
            if isnan(outside.half_width)
            else _bars(point[1], 100 * outside.half_width),
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
    axes.set(xlabel="processor-hours", ylabel="time outside the target, %")
    axes.margins(x=0.18, y=0.1)
    high = max(axes.get_ylim()[1], 1.0)
    axes.set_ylim(-0.04 * high, high)
    axes.text(0.01, 0.055, "↙ better", transform=axes.transAxes, color=_FRONT)
    _name(axes, points, colours)


def _bars(mean: float, half: float) -> list[list[float]]:
    return [[min(half, mean)], [min(half, 100 - mean)]]


def _name(
    axes: Any,  # noqa: ANN401
    points: list[tuple[tuple[float, float], str]],
    colours: Mapping[str, str],
) -> None:
    """Write names beside points: of those that lie side by side, one above the other."""
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


def _draw_load(axes: Any, stage: Stage, scale: float) -> None:  # noqa: ANN401
    times_s, rates = zip(*stage.rates.points, strict=True)
    axes.plot([at_s / scale for at_s in times_s], rates, color=_LOAD, lw=1.3)
    axes.set_ylabel("roots per second")
    axes.set_ylim(bottom=0, top=1.1 * max(*rates, 1e-3))


def _styled(
    outcomes: Sequence[Outcome], colours: Mapping[str, str]
) -> Iterator[tuple[Outcome, dict[str, Any]]]:
    """Yield each with how it is drawn: the first above the others, and stronger."""
    for number, outcome in enumerate(outcomes):
        yield (
            outcome,
            {
                "color": colours[outcome.policy],
                "lw": 1.3 if number else 2.2,
                "zorder": 3 - number / 100,
                "baseline": None,
            },
        )


def _draw_latency(
    axes: Any,  # noqa: ANN401
    stage: Stage,
    outcomes: Sequence[Outcome],
    colours: Mapping[str, str],
    scale: float,
) -> None:
    """Draw the statistic of each window, against the target."""
    drawn = [stage.target.seconds]
    for outcome, style in _styled(outcomes, colours):
        windows_s = outcome.windows_s[0]
        edges = np.minimum(np.arange(len(windows_s) + 1) * stage.window_s, stage.lasts_s)
        axes.stairs(windows_s, edges / scale, label=outcome.policy, **style)
        drawn += windows_s[windows_s > 0].tolist()
    axes.axhline(stage.target.seconds, color=_TARGET, ls="--", lw=1.2, label=str(stage.target))
    axes.set_ylabel(f"{stage.target.statistic}, seconds")
    if max(drawn) > _FAR * min(drawn):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _draw_processors(
    axes: Any,  # noqa: ANN401
    stage: Stage,
    outcomes: Sequence[Outcome],
    colours: Mapping[str, str],
    scale: float,
) -> None:
    """Draw the processors of all operators together."""
    for outcome, style in _styled(outcomes, colours):
        since_s, numbers = zip(*outcome.processors, strict=True)
        edges = [*since_s, max(stage.lasts_s, since_s[-1])]
        axes.stairs(numbers, [at_s / scale for at_s in edges], **style)
    axes.set_ylabel("processors")
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="y", integer=True)

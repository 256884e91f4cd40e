"""The picture of a history: the load, the latency it had, and the processors it was given."""

from collections.abc import Iterable
from math import isfinite, nan
from pathlib import Path
from typing import Any

from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.knowledge import Episode
from sojourn.report.plot.explanation import figure, save
from sojourn.report.turns import Turn, turns

__all__ = ["draw_history"]

_LOAD, _MEASURED, _EXPECTED, _TARGET = "#1d3557", "#3d5a80", "#e07a5f", "#c1121f"
_UNUSABLE, _OTHERS, _GRID = "#dde1e6", "#c9ced6", "#eceff3"
# Told apart also by those who see red and green alike.
_KINDS = {"up": "#c1121f", "down": "#2a9d8f", "move": "#8338ec", "told": "#6d6875"}
_OPERATORS = (
    "#3d5a80", "#98c1d9", "#e9c46a", "#f4a261", "#81b29a", "#b5838d", "#6d6875", "#a3b18a",
)  # fmt: skip
# Seconds in the unit, its name, and from how many of them on it is used.
_UNITS = ((86400.0, "days", 3), (3600.0, "hours", 3), (60.0, "minutes", 3), (1.0, "seconds", 0))
# More marks are drawn at the upper edge alone, more turns as points alone.
_MOST_MARKS, _DENSE = 60, 1000
# Latencies that differ by more are drawn on a scale of powers of ten.
_FAR = 30


def draw_history(
    episodes: Iterable[Episode],
    path: Path,
    target: Target | float | None = None,
    title: str = "what the loop did",
) -> None:
    """Write the picture of *episodes* to *path*, in the format that its ending names.

    *target* is in seconds, of what the decisions expected; a `Target` says of which statistic.
    A turn that has a target of its own is drawn beside that.
    Raise `BadInput` if there is nothing to draw or matplotlib is missing, `BadFile` if the
    file cannot be written.
    """
    statistic = target.statistic if isinstance(target, Target) else "mean"
    series = _Series(turns(episodes, statistic), target)
    picture = figure(11, 7.5)
    load, latency, processors = picture.subplots(
        3, sharex=True, gridspec_kw={"height_ratios": (2, 3, 3)}
    )
    _draw_load(load, series)
    _draw_latency(latency, series)
    _draw_processors(processors, series)
    for axes in (load, latency, processors):
        _mark_changes(axes, series, named=axes is load)
        axes.grid(axis="y", color=_GRID, lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        # operators lie on each other, and are told in that order
        axes.legend(
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            reverse=axes is processors,
        )
    processors.set_xlim(series.edges[0], series.edges[-1])
    processors.set_xlabel(series.unit)
    picture.align_ylabels()
    picture.suptitle(title)
    save(picture, path)


class _Series:
    """What is drawn of the turns: numbers alone, because there may be very many turns."""

    def __init__(self, passing: Iterable[Turn], target: Target | float | None) -> None:
        self.load: list[float] = []
        self.measured: list[float] = []
        self.expected: list[float] = []
        self.targets: list[Target | float | None] = []
        self.running: list[dict[str, int]] = []
        self.marks: list[tuple[float, str]] = []
        self.unusable: list[tuple[float, float]] = []
        self.statistic, edges = "mean", list[float]()
        wished: tuple[str, dict[str, int]] | None = None
        for turn in passing:
            seen, decision = turn.episode.observation, turn.episode.decision
            if not turn.episode.looked:  # it was done by hand, between two turns
                self.marks += [(seen.at_s, turn.done)] if turn.done in _KINDS else []
                continue
            if not edges:
                edges.append(seen.since_s)
            edges.append(seen.at_s)
            self.targets.append(turn.episode.target or target)
            self.statistic = turn.statistic
            self.load.append(seen.arrivals_per_s)
            self.measured.append(turn.measured_s)
            said = turn.expected
            self.expected.append(said.seconds if said and isfinite(said.seconds) else nan)
            self.running.append(dict(decision.before.allocation))
            wish = (turn.done, dict(decision.after.allocation))
            # what is not done is wished for again at each turn
            if turn.done in _KINDS or (turn.done != "hold" and wish != wished):
                self.marks.append((seen.at_s, turn.done))
            wished = wish
            if not seen.usable:
                self.unusable.append((seen.since_s, seen.at_s))
        if not edges:
            raise BadInput("there is nothing to draw: the loop has not had a turn yet")
        span = edges[-1] - edges[0]
        self.scale, self.unit, _ = next(u for u in _UNITS if span >= u[0] * u[2])
        self.edges = [at_s / self.scale for at_s in edges]

    @property
    def centres(self) -> list[float]:
        """The middle of each turn."""
        pairs = zip(self.edges, self.edges[1:], strict=False)
        return [(since + until) / 2 for since, until in pairs]


def _draw_load(axes: Any, series: _Series) -> None:  # noqa: ANN401 - matplotlib has no types
    _draw_steps(axes, series, series.load, color=_LOAD, lw=1.3, label="arrivals")
    axes.set_ylabel("roots per second")
    axes.set_ylim(bottom=0)


def _draw_steps(
    axes: Any,  # noqa: ANN401
    series: _Series,
    values: list[float],
    **style: Any,  # noqa: ANN401
) -> None:
    """Draw each value from the beginning of its turn to the end."""
    axes.plot(series.edges, [*values, values[-1]], drawstyle="steps-post", **style)


def _draw_latency(axes: Any, series: _Series) -> None:  # noqa: ANN401
    expected = series.expected
    dense = len(series.measured) > _DENSE
    style = {"ms": 1.5, "lw": 0.0} if dense else {"ms": 3.5, "lw": 0.6}
    axes.plot(series.centres, series.measured, ".-", color=_MEASURED, label="measured", **style)
    if any(map(isfinite, expected)):
        _draw_steps(axes, series, expected, color=_EXPECTED, lw=1.6, zorder=3, label="expected")
    drawn = [s for s in (*series.measured, *expected) if isfinite(s) and s > 0]
    names = dict.fromkeys(_target_text(target) for target in series.targets if target)
    if names:
        limits = [_target_s(target) for target in series.targets]
        label = "\nthen ".join(names)
        _draw_steps(axes, series, limits, color=_TARGET, ls="--", lw=1.2, label=label)
        drawn += filter(isfinite, limits)
    axes.set_ylabel(f"{series.statistic}, seconds")
    if drawn and max(drawn) > _FAR * min(drawn):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _target_s(target: Target | float | None) -> float:
    if target is None:
        return nan
    return target.seconds if isinstance(target, Target) else target


def _target_text(target: Target | float) -> str:
    return str(target) if isinstance(target, Target) else f"target {target:g} s"


def _draw_processors(axes: Any, series: _Series) -> None:  # noqa: ANN401
    """Draw the processors of each operator on top of those before it."""
    names = list(dict.fromkeys(name for running in series.running for name in running))
    most = {name: max(r.get(name, 0) for r in series.running) for name in names}
    told = sorted(names, key=lambda name: -most[name])
    if len(names) > len(_OPERATORS):
        told = told[: len(_OPERATORS) - 1]
    below = [0] * len(series.running)
    drawn = [(name, [name]) for name in names if name in told]
    if rest := [name for name in names if name not in told]:
        drawn.append((f"{len(rest)} others", rest))
    for number, (label, together) in enumerate(drawn):
        colour = _OPERATORS[number] if together != rest else _OTHERS
        heights = [sum(r.get(name, 0) for name in together) for r in series.running]
        above = [low + height for low, height in zip(below, heights, strict=True)]
        filled = [*below, below[-1]], [*above, above[-1]]
        axes.fill_between(series.edges, *filled, step="post", color=colour, label=label, lw=0)
        below = above
    axes.set_ylabel("processors")
    axes.set_ylim(bottom=0, top=1.08 * max(*below, 1))
    axes.locator_params(axis="y", integer=True)


def _mark_changes(axes: Any, series: _Series, *, named: bool) -> None:  # noqa: ANN401
    """Draw a line where processors were changed, dotted where they would have been."""
    low = 0.0 if len(series.marks) <= _MOST_MARKS else 0.94
    for done in dict.fromkeys(done for _, done in series.marks):
        axes.vlines(
            [at_s / series.scale for at_s, mark in series.marks if mark == done],
            low,
            1.0,
            transform=axes.get_xaxis_transform(),
            color=_KINDS[done.split()[0]],
            lw=1.0 if done in _KINDS else 1.3,
            ls="-" if done in _KINDS else ":",
            alpha=0.8,
            label=done if named else None,
        )
    for number, (since_s, at_s) in enumerate(series.unusable):
        axes.axvspan(
            since_s / series.scale,
            at_s / series.scale,
            color=_UNUSABLE,
            lw=0,
            zorder=0,
            label="not usable" if named and number == 0 else None,
        )

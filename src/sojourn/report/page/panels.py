"""The picture on the page of a run: load, latency, processors and backlog above each other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite, nan

from sojourn.report.page.curves import Scale, dots, joined, plain, steps, wedges
from sojourn.report.page.decisions import Decided
from sojourn.report.page.hover import columns
from sojourn.report.page.points import OperatorPoint, Point, gathered, then
from sojourn.report.terminal.history import clock
from sojourn.report.terminal.tables import duration

__all__ = ["picture"]

_WIDTH, _LEFT, _RIGHT, _TOP, _HEAD, _GAP = 1000, 64, 28, 40, 20, 12
_LOAD, _LATENCY, _ALL, _EACH = 90, 180, 80, 52
# More turns are drawn as points alone, more decisions without lines.
_DENSE, _MOST_MARKS = 500, 60
# How long the stroke for the end of a batch is.
_TICK = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One of the pictures: its *key* are the class, the sign and the name of each curve."""

    title: str
    label: str
    up: Scale
    height: int
    paths: tuple[tuple[str, str], ...]
    key: tuple[tuple[str, str, str], ...] = ()


def picture(points: Sequence[Point], decided: Iterable[Decided]) -> str:
    """Return the SVG of *points*, of which there is at least one, with all decisions."""
    across = Scale.across(points[0].since_s, points[-1].at_s, _LEFT, _WIDTH - _RIGHT)
    operators = gathered(points)
    together = _added(operators.values())
    curves = _Curves(across, points)
    panels = [
        curves.load(),
        curves.latency(),
        *([curves.processors("processors, all", together, _ALL)] if operators else []),
        *(curves.processors(f"processors, {n}", o, _EACH) for n, o in operators.items()),
        *(curves.backlog(f"backlog, {name}", o) for name, o in operators.items()),
    ]
    down = _TOP
    drawn = []
    for panel in panels:
        drawn.append(f'<g transform="translate(0 {down})">{_drawn(panel)}</g>')
        down += _HEAD + panel.height + _GAP
    height = down + 12
    marks = list(decided)
    many = " many" if len(marks) > _MOST_MARKS else ""
    body = "\n".join(
        [
            _unusable(across, points, down),
            _times(across, down),
            *drawn,
            columns(across, points, operators, top=_TOP, bottom=down),
            f'<g class="marks{many}">{"".join(_mark(across, m, down) for m in marks)}</g>',
        ]
    )
    label = "The run over time: load, sojourn time, processors and backlog"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="group" aria-label="{label}">{body}</svg>'
    )


class _Curves:
    """What draws the curves of a run, all over the same time."""

    def __init__(self, across: Scale, points: Sequence[Point]) -> None:
        self._across, self._points = across, points
        self._edges = [*(each.since_s for each in points), points[-1].at_s]
        self._centres = [(each.since_s + each.at_s) / 2 for each in points]

    def load(self) -> _Panel:
        """Return the roots that arrived."""
        values = [each.arrivals_per_s for each in self._points]
        up = Scale.of(values, height=_LOAD)
        return _Panel(
            title="load, roots per second",
            label=f"Load: {_range(values, _number)} roots per second",
            up=up,
            height=_LOAD,
            paths=(("load", self._steps(up, values)),),
        )

    def latency(self) -> _Panel:
        """Return the sojourn times, what was expected of them, and the targets."""
        statistic = then(each.statistic for each in self._points)
        targets = then(each.target for each in self._points if each.target)
        measured = [each.measured_s for each in self._points]
        expected = [each.expected_s for each in self._points]
        outside = [each.measured_s if each.outside else nan for each in self._points]
        limit = [each.target.seconds for each in self._points if each.target]
        up = Scale.of([*measured, *expected, *limit], height=_LATENCY, ticks=5, powers=True)
        paths = [("measured dots", dots(self._across, up, self._centres, measured))]
        key = [("measured", "●", "measured")]
        if len(measured) <= _DENSE:
            line = joined(self._across, up, self._centres, measured)
            paths.insert(0, ("measured line", line))
        if any(map(isfinite, expected)):
            paths.append(("expected", self._steps(up, expected)))
            key.append(("expected", "━", "expected"))
        label = f"Sojourn time, {statistic}: {_range(measured, duration)}"
        if targets:
            number = sum(each.outside for each in self._points)
            paths.append(("target", self._targets(up)))
            key.append(("target", "╌", targets))
            label += f"; above {targets} in {number} of {sum(map(isfinite, measured))} turns"
        if any(each.commits for each in self._points):
            paths.append(("commits", self._commits(_LATENCY)))
            key.append(("commits", "╵", "a batch ended"))
        if any(map(isfinite, outside)):
            paths.append(("outside", wedges(self._across, up, self._centres, outside)))
            key.append(("outside", "▲", "outside the target"))
        return _Panel(
            title=f"sojourn time, {statistic}, seconds",
            label=label,
            up=up,
            height=_LATENCY,
            paths=tuple(paths),
            key=tuple(key),
        )

    def _commits(self, height: int) -> str:
        """Return a short stroke at the foot for each turn in which a batch ended."""
        return "".join(
            f"M{self._across.at(centre):g} {height - _TICK:g}v{_TICK}"
            for centre, each in zip(self._centres, self._points, strict=True)
            if each.commits
        )

    def processors(self, title: str, operator: Sequence[OperatorPoint], height: int) -> _Panel:
        """Return those that run, those that were asked for, and what the load calls for."""
        running = [each.running for each in operator]
        wanted = [each.wanted for each in operator]
        called = [each.called for each in operator]
        up = Scale.of(
            [*running, *wanted, *called], height=height, ticks=3 if height == _ALL else 2,
            whole=True,
        )  # fmt: skip
        paths = [("running", self._steps(up, running, filled=True))]
        key = [("running", "■", "running")]
        if any(map(isfinite, called)):
            paths.append(("called", self._steps(up, called)))
            key.append(("called", "┅", "the load calls for"))
        paths.append(("wanted", self._steps(up, wanted)))
        key.insert(1, ("wanted", "━", "wanted"))
        return _Panel(
            title=title,
            label=f"{title}: {_range(running, _number)} running",
            up=up,
            height=height,
            paths=tuple(paths),
            key=tuple(key) if height == _ALL else (),
        )

    def backlog(self, title: str, operator: Sequence[OperatorPoint]) -> _Panel:
        """Return the records that wait."""
        values = [each.backlog for each in operator]
        up = Scale.of(values, height=_EACH, ticks=2, whole=True)
        return _Panel(
            title=title,
            label=f"{title}: {_range(values, _number)} records",
            up=up,
            height=_EACH,
            paths=(("backlog", self._steps(up, values, filled=True)),),
        )

    def _targets(self, up: Scale) -> str:
        """Return a line for each target, as long as it held."""
        path = ""
        for target, held in groupby(self._points, key=lambda each: each.target):
            if target is not None:
                spell = list(held)
                since, until = (
                    self._across.at(spell[0].since_s),
                    self._across.at(spell[-1].at_s),
                )
                path += f"M{since:g} {up.at(target.seconds):g}H{until:g}"
        return path

    def _steps(self, up: Scale, values: Sequence[float], *, filled: bool = False) -> str:
        return steps(self._across, up, self._edges, values, filled=filled)


def _drawn(panel: _Panel) -> str:
    key = "".join(
        f'<tspan dx="14" class="{kind}">{sign}</tspan><tspan dx="4">{plain(name)}</tspan>'
        for kind, sign, name in panel.key
    )
    lines = "".join(f"M{_LEFT} {panel.up.at(t):g}H{_WIDTH - _RIGHT}" for t in panel.up.ticks)
    ticks = "".join(
        f'<text x="{_LEFT - 6}" y="{panel.up.at(t) + 4:g}" class="tick">{_number(t)}</text>'
        for t in panel.up.ticks
    )
    paths = "".join(f'<path class="{kind}" d="{d}"/>' for kind, d in panel.paths if d)
    return (
        f'<g role="img" aria-label="{plain(panel.label)}">'
        f'<text x="{_LEFT}" y="{_HEAD - 7}"><tspan class="title">{plain(panel.title)}</tspan>'
        f'{key}</text><g transform="translate(0 {_HEAD})">'
        f'<path class="grid" d="{lines}"/>{ticks}{paths}</g></g>'
    )


def _times(across: Scale, bottom: float) -> str:
    lines = "".join(f"M{across.at(t):g} {_TOP}V{bottom}" for t in across.ticks)
    texts = "".join(
        f'<text x="{across.at(t):g}" y="{y}" class="time">{clock(t)}</text>'
        for t in across.ticks
        for y in (_TOP - 6, bottom + 8)
    )
    return f'<path class="grid" d="{lines}"/>{texts}'


def _unusable(across: Scale, points: Sequence[Point], bottom: float) -> str:
    """Return what shades the turns of which nothing is known, near ones together."""
    spans: list[list[float]] = []
    for each in points:
        if each.unusable is None:
            continue
        since, until = across.at(each.since_s), across.at(each.at_s)
        if spans and since - spans[-1][1] < 1:
            spans[-1][1] = until
        else:
            spans.append([since, until])
    path = "".join(f"M{a:g} {_TOP}H{b:g}V{bottom}H{a:g}Z" for a, b in spans)
    return f'<path class="unusable" d="{path}"/>' if path else ""


def _mark(across: Scale, each: Decided, bottom: float) -> str:
    x, when = across.at(each.at_s), f"{clock(each.at_s)} {each.done}"
    done = "" if each.carried_out else " undone"
    told = plain(f"{when}: {each.reason}")
    return (
        f'<a id="t{each.number}" href="#d{each.number}" class="{each.kind}{done}" '
        f'aria-label="{plain(when)}: to the decision"><title>{told}</title>'
        f'<path d="M{x:g} {_TOP - 20}V{bottom}"/>'
        f'<text x="{x:g}" y="{_TOP - 24}">{each.glyph}</text></a>'
    )


def _added(operators: Iterable[Sequence[OperatorPoint]]) -> list[OperatorPoint]:
    """Return all operators as one; what is not known of one is not known of all."""
    return [
        OperatorPoint(
            sum(o.running for o in each),
            sum(o.wanted for o in each),
            sum(o.called for o in each),
            sum(o.backlog for o in each),
        )
        for each in zip(*operators, strict=True)
    ]


def _range(values: Iterable[float], told: Callable[[float], str]) -> str:
    known = [value for value in values if isfinite(value)]
    if not known:
        return "not known"
    low, high = told(min(known)), told(max(known))
    return low if low == high else f"from {low} to {high}"


def _number(value: float) -> str:
    return f"{value:.4g}"

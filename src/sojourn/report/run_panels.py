"""The charts of a run over time: load, sojourn time, processors and backlog."""

from collections.abc import Iterable, Sequence
from math import isfinite, nan

from sojourn.report.panel import Panel, Series, far_apart
from sojourn.report.series import Course, OperatorPoint
from sojourn.report.text import duration, extent, sequence

# Above this number of turns, points are not connected.
_DENSE = 500


def load(course: Course) -> Panel:
    values = [each.arrivals_per_s for each in course.points]
    return _panel(
        course,
        title="load, roots per second",
        y_label="roots per second",
        series=[_steps(course, "arrivals", "load", values)],
        summary=f"Load: {_extent(values)} roots per second",
        height=2,
    )


def latency(course: Course) -> Panel:
    points, edges = course.points, course.edges
    statistic = sequence(each.statistic for each in points)
    targets = list(dict.fromkeys(each.target for each in points if each.target))
    measured = [each.measured_s for each in points]
    expected = [each.expected_s for each in points]
    outside = [each.measured_s if course.misses(each) else nan for each in points]
    commits = [float(each.commits or nan) for each in points]
    dense = len(measured) > _DENSE
    series = [
        Series(
            label="measured",
            x=edges,
            y=measured,
            kind="points" if dense else "lines",
            role="measured",
        ),
        _steps(course, "expected", "expected", expected),
    ]
    limits: list[float] = []
    for number, target in enumerate(targets):
        held = [target.seconds if each.target == target else nan for each in points]
        then = "then " if number else ""
        series.append(_steps(course, f"{then}{target}", "target", held))
        limits.append(target.seconds)
    series += [
        Series(label="end of a batch", x=edges, y=commits, kind="ticks", role="commits"),
        Series(
            label="slice missed" if course.judged else "outside the target",
            x=edges,
            y=outside,
            kind="points",
            role="outside",
        ),
    ]
    summary = f"Sojourn time, {statistic}: {extent(measured, duration) or 'unknown'}"
    if course.judged:
        kept = course.judged - len(course.missed)
        summary += f"; {sequence(targets)} kept in {kept} of {course.judged} slices"
    elif targets:
        number = sum(each.outside for each in points)
        seen = sum(each.turns for each in points if isfinite(each.measured_s))
        summary += f"; above {sequence(targets)} in {number} of {seen} turns"
    return _panel(
        course,
        title=f"sojourn time, {statistic}, seconds",
        y_label=f"{statistic}, seconds",
        series=series,
        summary=summary,
        height=4,
        log_y=far_apart([*measured, *expected, *limits]),
    )


def planned(course: Course) -> Panel:
    """Return the chart of the load that is planned for, which follows the error budget."""
    values = [1 + level for _, level in course.levels]
    edges = [*(at_s for at_s, _ in course.levels), course.edges[-1]]
    return _panel(
        course,
        title="load planned for, as a multiple of the load",
        y_label="times the load",
        series=[
            Series(label="planned for", x=edges, y=values, kind="steps", role="called"),
        ],
        summary=f"load planned for: {_extent(values)} times the load",
    )


def allocation(course: Course) -> Panel:
    series = [
        Series(label=name, x=course.edges, y=[each.given for each in points], kind="stack")
        for name, points in course.operators().items()
    ]
    return _panel(course, title="processors", y_label="processors", series=series, height=3)


def total(course: Course) -> Panel:
    """Return the chart of the processors of all operators, after each turn."""
    values = [float(each.after) for each in course.points]
    series = [_steps(course, "processors", "running", values)]
    return _panel(course, title="processors", y_label="processors", series=series)


def processors(
    course: Course, name: str, points: Sequence[OperatorPoint], *, height: float = 1
) -> Panel:
    """Return the chart of an operator's processors: running, wanted, needed for the load."""
    running = [each.running for each in points]
    return _panel(
        course,
        title=f"processors, {name}",
        y_label="processors",
        series=[
            Series(label="running", x=course.edges, y=running, kind="area", role="running"),
            _steps(course, "wanted", "wanted", [each.wanted for each in points]),
            _steps(course, "needed for the load", "called", [each.called for each in points]),
        ],
        summary=f"processors, {name}: {_extent(running)} running",
        height=height,
    )


def backlog(
    course: Course, name: str, points: Sequence[OperatorPoint], *, height: float = 1
) -> Panel:
    values = [each.backlog for each in points]
    return _panel(
        course,
        title=f"backlog, {name}",
        y_label="records",
        series=[Series(label="backlog", x=course.edges, y=values, kind="area", role="backlog")],
        summary=f"backlog, {name}: {_extent(values)} records",
        height=height,
    )


def together(operators: Iterable[Sequence[OperatorPoint]]) -> list[OperatorPoint]:
    """Return the sum over all operators, NaN where it is unknown for one of them."""
    every = zip(*operators, strict=True)
    return [OperatorPoint(*map(sum, zip(*each, strict=True))) for each in every]


def _panel(  # noqa: PLR0913 - keyword arguments of a chart
    course: Course,
    *,
    title: str,
    y_label: str,
    series: Sequence[Series],
    summary: str = "",
    height: float = 1,
    log_y: bool = False,
) -> Panel:
    return Panel(
        kind="steps",
        title=title,
        x_label="time",
        y_label=y_label,
        # a series without values has no line and no legend
        series=tuple(
            each for n, each in enumerate(series) if n == 0 or any(map(isfinite, each.y))
        ),
        marks=tuple(course.marks),
        spans=_unusable(course),
        summary=summary,
        height=height,
        log_y=log_y,
        whole=y_label in ("processors", "records"),
        over_time=True,
    )


def _steps(course: Course, label: str, role: str, values: Sequence[float]) -> Series:
    return Series(label=label, x=course.edges, y=values, kind="steps", role=role)


def _unusable(course: Course) -> tuple[tuple[float, float], ...]:
    """Return the spans of unusable turns; consecutive turns are one span."""
    spans: list[tuple[float, float]] = []
    for each in course.points:
        if each.unusable is None:
            continue
        if spans and spans[-1][1] == each.since_s:
            spans[-1] = (spans[-1][0], each.at_s)
        else:
            spans.append((each.since_s, each.at_s))
    return tuple(spans)


def _extent(values: Iterable[float]) -> str:
    known = extent(values)
    return f"from {known}" if " to " in known else known or "unknown"

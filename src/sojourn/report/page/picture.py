"""The figure on the page of a run: its panels and tooltips."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sojourn.report.page.svg import Drawn, Scale, draw, shading
from sojourn.report.run_panels import backlog, latency, load, processors, together
from sojourn.report.series import Course, OperatorPoint, Point
from sojourn.report.text import clock, duration, extent, sequence

__all__ = ["Picture", "picture"]

_WIDTH, _LEFT, _RIGHT, _TOP, _HEAD, _GAP = 1000, 64, 28, 40, 20, 12
# So many pixels is a panel high that has the height 1.
_PIXELS = 45
_ALL, _EACH = 1.8, 1.2
_MOST_COLUMNS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The figure; *columns* are x, width and text of each tooltip."""

    width: int
    left: int
    right: int
    top: int
    head: int
    bottom: float
    across: Scale
    unusable: str
    panels: Sequence[Drawn]
    columns: Sequence[tuple[float, float, str]]


def picture(course: Course) -> Picture:
    """Return the figure of *course*, which has at least one turn."""
    operators, edges = course.operators(), course.edges
    across = Scale.across(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT)
    whole = together(operators.values())
    panels = [
        load(course),
        latency(course),
        *([processors(course, "all", whole, height=_ALL)] if operators else []),
        *(processors(course, name, o, height=_EACH) for name, o in operators.items()),
        *(backlog(course, name, o, height=_EACH) for name, o in operators.items()),
    ]
    drawn, top = list[Drawn](), float(_TOP)
    for panel in panels:
        height = _PIXELS * panel.height
        drawn.append(draw(panel, across, top=top, height=height))
        top += _HEAD + height + _GAP
    return Picture(
        width=_WIDTH,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        head=_HEAD,
        bottom=top,
        across=across,
        unusable=shading(panels[0], across, _TOP, top),
        panels=list(_keyed(drawn)),
        columns=list(_columns(across, list(course.points), operators)),
    )


def _keyed(panels: Sequence[Drawn]) -> Iterator[Drawn]:
    """Yield *panels* with a legend entry only at the first panel that has the curve."""
    known: set[str] = set()
    for panel in panels:
        key = tuple(each for each in panel.key if each[0] not in known)
        known |= {role for role, _, _ in key}
        yield replace(panel, key=key)


def _columns(
    across: Scale, points: Sequence[Point], operators: Mapping[str, Sequence[OperatorPoint]]
) -> Iterator[tuple[float, float, str]]:
    """Yield a tooltip for each point, or for several consecutive ones."""
    number = min(len(points), _MOST_COLUMNS)
    for column in range(number):
        part = slice(column * len(points) // number, (column + 1) * len(points) // number)
        some = points[part]
        x, until = across.at(some[0].since_s), across.at(some[-1].at_s)
        lines = [*_of_all(some), *(_of_one(name, o[part]) for name, o in operators.items())]
        yield x, max(until - x, 0.5), "\n".join(lines)


def _of_all(points: Sequence[Point]) -> list[str]:
    turns = sum(each.turns for each in points)
    many = f", {turns} turns" if turns > 1 else ""
    lines = [f"{clock(points[0].since_s)} to {clock(points[-1].at_s)}{many}"]
    blind = [each for each in points if each.unusable is not None]
    if blind:
        number = f", {sum(each.turns for each in blind)} turns" if many else ""
        lines.append(f"unusable{number}: {blind[-1].unusable}")
    if len(blind) == len(points):
        return lines
    outside = sum(each.outside for each in points)
    often = f" in {outside} turns" if outside and many else ""
    took = extent((each.measured_s for each in points), duration) or "?"
    expected = extent((each.expected_s for each in points), duration) or "?"
    return [
        *lines,
        f"load {extent(each.arrivals_per_s for each in points) or '?'} per s",
        f"{sequence(each.statistic for each in points)} {took}"
        + (f", outside the target{often}" if outside else ""),
        f"expected {expected}",
    ]


def _of_one(name: str, points: Sequence[OperatorPoint]) -> str:
    _, running, wanted, called, waiting = (
        extent(values) or "?" for values in zip(*points, strict=True)
    )
    return f"{name}: {running} running, {wanted} wanted, {called} needed, backlog {waiting}"

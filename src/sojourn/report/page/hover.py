"""What pointing at a time in the picture of a run shows: all that is known of the turns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite

from sojourn.report.page.curves import Scale, plain
from sojourn.report.page.points import OperatorPoint, Point, then
from sojourn.report.terminal.history import clock
from sojourn.report.terminal.tables import duration

__all__ = ["columns"]

_MOST_COLUMNS = 500


def columns(
    across: Scale,
    points: Sequence[Point],
    operators: Mapping[str, Sequence[OperatorPoint]],
    *,
    top: float,
    bottom: float,
) -> str:
    """Return a column for each turn, or of many turns for some that follow each other."""
    number = min(len(points), _MOST_COLUMNS)
    drawn = []
    for column in range(number):
        first = column * len(points) // number
        last = (column + 1) * len(points) // number
        x, until = across.at(points[first].since_s), across.at(points[last - 1].at_s)
        told = _told(points[first:last])
        for name, operator in operators.items():
            told += [_told_of(name, operator[first:last])]
        drawn.append(
            f'<rect x="{x:g}" y="{top}" width="{max(until - x, 0.5):g}" '
            f'height="{bottom - top:g}"><title>{plain(chr(10).join(told))}</title></rect>'
        )
    return f'<g class="columns" aria-hidden="true">{"".join(drawn)}</g>'


def _told(turns: Sequence[Point]) -> list[str]:
    many = f", {len(turns)} turns" if len(turns) > 1 else ""
    lines = [f"{clock(turns[0].since_s)} to {clock(turns[-1].at_s)}{many}"]
    blind = [each.unusable for each in turns if each.unusable is not None]
    if blind:
        lines.append(f"not usable{f', {len(blind)} turns' if many else ''}: {blind[-1]}")
    if len(blind) == len(turns):
        return lines
    outside = sum(each.outside for each in turns)
    often = f" in {outside} turns" if outside and many else ""
    took = _range((each.measured_s for each in turns), duration)
    lines += [
        f"load {_range((each.arrivals_per_s for each in turns), _number)} per s",
        f"{then(each.statistic for each in turns)} {took}"
        + (f", outside the target{often}" if outside else ""),
        f"expected {_range((each.expected_s for each in turns), duration)}",
    ]
    return lines


def _told_of(name: str, turns: Sequence[OperatorPoint]) -> str:
    running = _range((each.running for each in turns), _number)
    wanted = _range((each.wanted for each in turns), _number)
    called = _range((each.called for each in turns), _number)
    backlog = _range((each.backlog for each in turns), _number)
    return f"{name}: {running} running, {wanted} wanted, {called} called for, backlog {backlog}"


def _range(values: Iterable[float], told: Callable[[float], str]) -> str:
    known = [value for value in values if isfinite(value)]
    if not known:
        return "?"
    low, high = told(min(known)), told(max(known))
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    return f"{value:.4g}"

"""The page of a run: one HTML file, with a figure of panels and tooltips."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum, isfinite
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from sojourn.decide.objective import percent
from sojourn.errors import BadFile
from sojourn.history import Run
from sojourn.knowledge import Episode, PredictionError, measured_s
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.report.page.decisions import Decisions
from sojourn.report.page.svg import Drawn, Scale, draw, shading
from sojourn.report.run_panels import backlog, latency, load, planned, processors, together
from sojourn.report.series import Course, OperatorPoint, Point
from sojourn.report.text import clock, duration, extent, sequence
from sojourn.report.turns import Totals, Turn, failed_text, turns
from sojourn.text import printable

_ENDINGS = (".html", ".htm")
# With more decisions, the figure has no line for each.
_MOST_MARKS = 60

_Fact = tuple[str, str, str]
"""A name, a value, and a remark."""

_WIDTH, _LEFT, _RIGHT, _TOP, _HEAD, _GAP = 1000, 64, 28, 40, 20, 12
# The pixels of a panel with the height 1.
_PIXELS = 45
_ALL, _EACH = 1.8, 1.2
_MOST_COLUMNS = 500


def write_page(episodes: Iterable[Episode], run: Run, path: Path, *, number: int = 1) -> None:
    """Write the page of *run* to *path*.

    Raise `BadFile` if it cannot be written, or if *path* does not end in .html: this protects
    other files, such as the history, from being overwritten by mistake.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise BadFile(str(path), "does not end in .html", "rename it")
    text = page(episodes, run, number=number)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadFile(
            str(path), f"cannot be written: {error}", "choose another path"
        ) from error


def page(episodes: Iterable[Episode], run: Run, *, number: int = 1) -> str:
    totals, course = Totals(run.topology, run.target), Course(run.target)
    decisions, last = Decisions(), None
    completions, sums = Sketch.empty(), Sketch.empty()
    statistic = run.target.statistic if run.target else "mean"
    for turn in totals.counting(turns(episodes, statistic)):
        decisions.count(turn)
        course.add(turn)
        last, seen = turn, turn.episode.observation
        completions, sums = completions + seen.completions, sums + seen.sums
    whole = Observation(since_s=0, at_s=0, completions=completions, sums=sums)
    return _template().render(
        title=f"{run.topology.name}, run {number}",
        begun=f"{run.policy}; started {run.started_at:%Y-%m-%d %H:%M:%S %Z}",
        facts=[] if last is None else _facts(course, run, totals, last, whole),
        picture=_picture(course) if course.points else None,
        decisions=decisions,
        many=len(decisions.rows) > _MOST_MARKS,
        errors=totals.all_errors,
    )


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("sojourn.report.page"),
        autoescape=True,
        finalize=_plain,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clock": clock,
        "share": "{:.1%}".format,
        "signed": "{:+.1%}".format,
    }
    return environment.get_template("page.html")


def _plain(value: object) -> object:
    """Return *value* as text for the page, without unprintable characters."""
    if isinstance(value, float):
        return f"{value:g}"
    return printable(value, keep="\n") if isinstance(value, str) else value


def _facts(
    course: Course, run: Run, totals: Totals, last: Turn, whole: Observation
) -> list[_Fact]:
    facts: list[_Fact] = []
    if targets := list(totals.judged) or [each for each in (run.target,) if each]:
        took_s = measured_s(whole, targets[-1].statistic)
        all_s = f"{duration(took_s)} over the whole run" if isfinite(took_s) else ""
        several = len(targets) > 1
        facts.append(("target", sequence(targets), "changed by hand" if several else all_s))
        facts += _slices(totals) or [_outside(totals)]
    mean = f"{course.used_s / totals.lasted_s:.3g} on average" if totals.lasted_s > 0 else ""
    unusable = f", {totals.unusable} unusable" if totals.unusable else ""
    why = f"{last.episode.decision.reason}{failed_text(last.episode)}"
    return [
        *facts,
        ("processor-seconds used", f"{course.used_s:,.0f}", mean),
        ("changes", str(totals.changes), totals.kinds),
        _error(totals.error),
        ("lasted", clock(totals.lasted_s), f"{totals.turns} turns{unusable}"),
        ("last decision", last.done, why),
    ]


def _slices(totals: Totals) -> list[_Fact]:
    """Return the slices that were kept, and the causes of misses, for each objective."""
    facts: list[_Fact] = []
    for objective, slices in totals.slices.items():
        several = f"slices that kept {objective.target}"
        name = several if len(totals.slices) > 1 else "slices kept"
        kept = slices.judged - slices.missed
        remark = f"{kept} of {slices.judged} slices of {duration(objective.slice_s)}"
        required = f"{percent(objective.kept)} are required"
        facts.append((name, f"{kept / slices.judged:.2%}", f"{remark}; {required}"))
        if slices.missed:
            facts.append(("slices missed", str(slices.missed), slices.causes_text))
    return facts


def _outside(totals: Totals) -> _Fact:
    measured_s = fsum(judged.measured_s for judged in totals.judged.values())
    above_s = fsum(judged.above_s for judged in totals.judged.values())
    name = "time outside the target"
    if measured_s <= 0:
        return name, "unknown", "nothing was measured"
    return name, f"{above_s / measured_s:.1%}", f"{clock(above_s)} of {clock(measured_s)}"


def _error(error: PredictionError | None) -> _Fact:
    name = "prediction error"
    if error is None:
        return name, "unknown", "nothing to compare"
    return name, f"{error.spread:.1%}", f"mean {error.mean:+.1%}, {error.number} times"


def _picture(course: Course) -> dict[str, object]:
    """Return what the template draws of *course*, which must have a point, in pixels."""
    operators, edges = course.operators(), course.edges
    across = Scale.across(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT)
    whole = together(operators.values())
    panels = [
        load(course),
        latency(course),
        *([planned(course)] if course.levels else []),
        *([processors(course, "all", whole, height=_ALL)] if operators else []),
        *(processors(course, name, o, height=_EACH) for name, o in operators.items()),
        *(backlog(course, name, o, height=_EACH) for name, o in operators.items()),
    ]
    drawn, top = list[Drawn](), float(_TOP)
    for panel in panels:
        height = _PIXELS * panel.height
        drawn.append(draw(panel, across, top=top, height=height))
        top += _HEAD + height + _GAP
    return {
        "width": _WIDTH,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "top": _TOP,
        "head": _HEAD,
        "bottom": top,
        "across": across,
        "unusable": shading(panels[0], across, _TOP, top),
        "panels": list(_keyed(drawn)),
        "columns": list(_columns(across, course, operators)),
    }


def _keyed(panels: Sequence[Drawn]) -> Iterator[Drawn]:
    """Yield *panels* with each legend entry only at the first panel that has the curve."""
    known: set[str] = set()
    for panel in panels:
        key = tuple(each for each in panel.key if each[0] not in known)
        known |= {role for role, _, _ in key}
        yield replace(panel, key=key)


def _columns(
    across: Scale, course: Course, operators: Mapping[str, Sequence[OperatorPoint]]
) -> Iterator[tuple[float, float, str]]:
    """Yield x, width and text of a tooltip for each point, or for several consecutive ones."""
    points = list(course.points)
    number = min(len(points), _MOST_COLUMNS)
    for column in range(number):
        part = slice(column * len(points) // number, (column + 1) * len(points) // number)
        some = points[part]
        x, until = across.at(some[0].since_s), across.at(some[-1].at_s)
        lines = [
            *_of_all(course, some),
            *(_of_one(name, o[part]) for name, o in operators.items()),
        ]
        yield x, max(until - x, 0.5), "\n".join(lines)


def _of_all(course: Course, points: Sequence[Point]) -> list[str]:
    turns = sum(each.turns for each in points)
    many = f", {turns} turns" if turns > 1 else ""
    lines = [f"{clock(points[0].since_s)} to {clock(points[-1].at_s)}{many}"]
    blind = [each for each in points if each.unusable is not None]
    if blind:
        number = f", {sum(each.turns for each in blind)} turns" if many else ""
        lines.append(f"unusable{number}: {blind[-1].unusable}")
    if len(blind) == len(points):
        return lines
    late = [each for each in points if course.misses(each)]
    outside = sum(each.turns if course.judged else each.outside for each in late)
    often = f" in {outside} turns" if outside and many else ""
    what = "in a slice that was missed" if course.judged else f"outside the target{often}"
    took = extent((each.measured_s for each in points), duration) or "?"
    expected = extent((each.expected_s for each in points), duration) or "?"
    return [
        *lines,
        f"load {extent(each.arrivals_per_s for each in points) or '?'} per s",
        f"{sequence(each.statistic for each in points)} {took}" + (f", {what}" if late else ""),
        f"expected {expected}",
    ]


def _of_one(name: str, points: Sequence[OperatorPoint]) -> str:
    _, running, wanted, called, waiting = (
        extent(values) or "?" for values in zip(*points, strict=True)
    )
    return f"{name}: {running} running, {wanted} wanted, {called} needed, backlog {waiting}"

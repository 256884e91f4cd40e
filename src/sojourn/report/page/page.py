"""The page of a run: one HTML file."""

from collections.abc import Iterable
from math import fsum, isfinite
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from sojourn.errors import BadFile
from sojourn.history import Run
from sojourn.knowledge import Episode, PredictionError, measured_s
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.report.page.decisions import Decisions
from sojourn.report.page.picture import picture
from sojourn.report.series import Course
from sojourn.report.text import clock, duration, sequence
from sojourn.report.totals import Totals
from sojourn.report.turns import Turn, failed_text, turns
from sojourn.text import printable

__all__ = ["page", "write_page"]

_ENDINGS = (".html", ".htm")
# More decisions are drawn without lines.
_MOST_MARKS = 60

Fact = tuple[str, str, str]
"""A name, a value, and a remark."""


def write_page(episodes: Iterable[Episode], run: Run, path: Path, *, number: int = 1) -> None:
    """Write the page of *run*, which has this *number*, to *path*.

    Raise `BadFile` if it cannot be written, or does not end in .html: it may be another file,
    such as the history.
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
    """Return the page of *run*: summary, charts and decisions."""
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
        picture=picture(course) if course.points else None,
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
) -> list[Fact]:
    """Return the summary of the run."""
    facts: list[Fact] = []
    if targets := list(totals.judged) or [each for each in (run.target,) if each]:
        took_s = measured_s(whole, targets[-1].statistic)
        all_s = f"{duration(took_s)} over the whole run" if isfinite(took_s) else ""
        several = len(targets) > 1
        facts.append(("target", sequence(targets), "changed by hand" if several else all_s))
        facts.append(_outside(totals))
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


def _outside(totals: Totals) -> Fact:
    """Return the fraction of the time outside the target."""
    measured_s = fsum(judged.measured_s for judged in totals.judged.values())
    above_s = fsum(judged.above_s for judged in totals.judged.values())
    name = "time outside the target"
    if measured_s <= 0:
        return name, "unknown", "nothing was measured"
    return name, f"{above_s / measured_s:.1%}", f"{clock(above_s)} of {clock(measured_s)}"


def _error(error: PredictionError | None) -> Fact:
    name = "prediction error"
    if error is None:
        return name, "unknown", "nothing to compare"
    return name, f"{error.spread:.1%}", f"mean {error.mean:+.1%}, {error.number} times"

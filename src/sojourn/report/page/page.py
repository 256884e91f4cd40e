"""The page of a run: one HTML file for a browser, to look at rather than to read."""

from collections.abc import Iterable, Sequence
from math import fsum, isfinite
from pathlib import Path

from sojourn.errors import BadFile
from sojourn.history import Run
from sojourn.knowledge import Episode, PredictionError, measured_s
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.report.page.curves import plain
from sojourn.report.page.decisions import Decisions, decisions_table
from sojourn.report.page.panels import picture
from sojourn.report.page.points import Point, point, then
from sojourn.report.page.style import FRAME
from sojourn.report.terminal.history import clock
from sojourn.report.terminal.tables import duration
from sojourn.report.turns import Tally, Turn, failed_text, turns

__all__ = ["page", "write_page"]

_ENDINGS = (".html", ".htm")
# What is no change, and no wish for one.
_NONE = ("hold", "told")


def write_page(episodes: Iterable[Episode], run: Run, path: Path, *, number: int = 1) -> None:
    """Write the page of *run*, the one of that *number*, to *path*.

    Raise `BadFile` if it cannot be written, or is not named as a page: it may be something
    else, the history itself for one.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise BadFile(str(path), "is no name of a page", "let it end in .html")
    text = page(episodes, run, number=number)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadFile(
            str(path), f"cannot be written: {error}", "name a file you may write"
        ) from error


def page(episodes: Iterable[Episode], run: Run, *, number: int = 1) -> str:
    """Return the page of *run*: what it came to, how it went, and what was decided."""
    tally, decisions = Tally(run.topology, run.target), Decisions()
    points: list[Point] = []
    last: Turn | None = None
    completions, sums = Sketch.empty(), Sketch.empty()
    statistic = run.target.statistic if run.target else "mean"
    for turn in tally.counting(turns(episodes, statistic)):
        decisions.count(turn)
        last, seen = turn, turn.episode.observation
        completions, sums = completions + seen.completions, sums + seen.sums
        drawn = point(turn, run.target)
        if turn.episode.looked and isfinite(drawn.since_s) and isfinite(drawn.at_s):
            points.append(drawn)
    title = f"{run.topology.name}, run {number}"
    begun = f"{run.policy}; started {run.started_at:%Y-%m-%d %H:%M:%S %Z}"
    parts = [f'<h1>{plain(title)}</h1>\n<p class="of">{plain(begun)}</p>']
    if last is None:
        parts.append("<p>The loop has not had a turn yet.</p>")
    else:
        whole = Observation(since_s=0, at_s=0, completions=completions, sums=sums)
        parts.append(_head(points, run, tally, last, whole))
        if points:
            svg = picture(points, decisions.rows)
            parts.append(f'<h2>Over time</h2>\n<div class="wide">{svg}</div>')
        parts += ["<h2>Decisions</h2>", decisions_table(decisions), _errors(tally)]
    return FRAME.substitute(title=plain(title), body="\n".join(parts))


def _head(
    points: Sequence[Point], run: Run, tally: Tally, last: Turn, whole: Observation
) -> str:
    """Return what the run came to: each fact with its name and what more there is to it."""
    facts: list[tuple[str, str, str]] = []
    if targets := list(tally.judged) or [each for each in (run.target,) if each]:
        took_s = measured_s(whole, targets[-1].statistic)
        all_s = f"{duration(took_s)} over the whole run" if isfinite(took_s) else ""
        several = len(targets) > 1
        facts.append(("target", then(targets), "changed by hand" if several else all_s))
        facts.append(_outside(points))
    used_s = fsum(each.processors * each.lasted_s for each in points)
    mean = f"{used_s / tally.lasted_s:.3g} on average" if tally.lasted_s > 0 else ""
    kinds = ", ".join(f"{n} {done}" for done, n in tally.done.items() if done not in _NONE)
    unusable = f", {tally.unusable} not usable" if tally.unusable else ""
    why = f"{last.episode.decision.reason}{failed_text(last.episode)}"
    facts += [
        ("processor-seconds used", f"{used_s:,.0f}", mean),
        ("changes", str(tally.changes), kinds),
        _error(tally.error),
        ("lasted", clock(tally.lasted_s), f"{tally.turns} turns{unusable}"),
        ("last decision", last.done, why),
    ]
    cells = "\n".join(
        f"<div><dt>{name}</dt><dd>{plain(value)} <small>{plain(more)}</small></dd></div>"
        for name, value, more in facts
    )
    return f"<dl>\n{cells}\n</dl>"


def _outside(points: Iterable[Point]) -> tuple[str, str, str]:
    measured = [each for each in points if isfinite(each.measured_s)]
    outside = [each for each in measured if each.outside]
    lasted_s = fsum(each.lasted_s for each in measured)
    name = "time outside the target"
    if lasted_s <= 0:
        return name, "not known", "nothing was measured"
    part = fsum(each.lasted_s for each in outside) / lasted_s
    return name, f"{part:.1%}", f"{len(outside)} of {len(measured)} turns"


def _error(error: PredictionError | None) -> tuple[str, str, str]:
    name = "prediction off by"
    if error is None:
        return name, "not known", "nothing to compare"
    return name, f"{error.spread:.1%}", f"mean error {error.mean:+.1%}, {error.number} times"


def _errors(tally: Tally) -> str:
    """Return the table of what was predicted, and how far off that was."""
    whole = {"latency": tally.error} if tally.error else {}
    rows = "\n".join(
        f'<tr><th scope="row">{plain(name)}</th><td>{error.number}</td>'
        f"<td>{error.mean:+.1%}</td><td>{error.spread:.1%}</td></tr>"
        for name, error in (*whole.items(), *tally.errors.items())
    )
    if not rows:
        return ""
    heads = ("predicted", "times", "mean error", "off by")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        '<h2>Predictions</h2>\n<table class="errors"><caption>What was expected against what '
        f"then happened</caption><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>"
    )

"""The decisions on the page of a run: what was changed or wished for, and what came of it."""

from collections import deque
from collections.abc import Mapping
from math import isfinite, isnan

from sojourn.knowledge import measured_s
from sojourn.measure.observation import Observation
from sojourn.report.page.curves import plain
from sojourn.report.terminal.history import clock
from sojourn.report.terminal.tables import duration
from sojourn.report.turns import Turn, failed_text

__all__ = ["Decided", "Decisions", "decisions_table"]

# A table of more rows is for a program to read, which `history --json` is for.
_MOST_ROWS = 1000
_MOST_OPERATORS = 8
_GLYPHS = {"up": "▲", "down": "▼", "move": "◆", "told": "●"}
_UNDONE_GLYPHS = {"up": "△", "down": "▽", "move": "◇", "hold": "✕"}


class Decided:
    """A decision not to hold, one that failed, or an order; and what happened until the next.

    What the engine refused, or the loop only advises, is wished for again at each turn: it
    is one decision, of so many *turns*.
    """

    def __init__(self, number: int, turn: Turn) -> None:
        episode = turn.episode
        self.number, self.turns = number, 1
        self.at_s, self.done, self.statistic = (
            episode.observation.at_s,
            turn.done,
            turn.statistic,
        )
        self.decision, self.cost = episode.decision, episode.cost
        self.reason = f"{episode.decision.reason}{failed_text(episode)}"
        self.next_s: float | None = None
        self.after: Observation | None = None

    @property
    def kind(self) -> str:
        """Up, down or move; told where it was told something; hold where it failed itself."""
        return "told" if self.done == "told" else self.decision.kind

    @property
    def carried_out(self) -> bool:
        """Whether it was done."""
        return self.cost is not None or self.done == "told"

    @property
    def glyph(self) -> str:
        """The kind as a sign, hollow where it was not done."""
        return (_GLYPHS if self.carried_out else _UNDONE_GLYPHS)[self.kind]

    def same(self, turn: Turn) -> bool:
        """Tell whether *turn* wishes for the same once more."""
        wished = turn.episode.decision.after == self.decision.after
        return not self.carried_out and self.done == turn.done and wished

    def then(self, seen: Observation) -> None:
        """Take in what was seen after it."""
        if self.next_s is None:
            self.next_s = measured_s(seen, self.statistic)
        since_s, roots = self.at_s, seen.arrivals_per_s * seen.lasted_s
        if not (seen.usable and isfinite(roots)):
            return
        before, lasted_s = self.after, seen.lasted_s
        completions, sums = seen.completions, seen.sums
        if before is not None:
            # of intervals that could not be used nothing is known, nor how many roots came
            lasted_s += before.lasted_s
            roots += before.arrivals_per_s * before.lasted_s
            completions, sums = before.completions + completions, before.sums + sums
        self.after = Observation(
            since_s=since_s,
            at_s=since_s + lasted_s,
            arrivals_per_s=roots / lasted_s if lasted_s > 0 else 0.0,
            completions=completions,
            sums=sums,
        )


class Decisions:
    """The last decisions of a run, taken in as turns pass by."""

    def __init__(self) -> None:
        self.number = 0
        self.rows: deque[Decided] = deque(maxlen=_MOST_ROWS)
        self._open: Decided | None = None

    def count(self, turn: Turn) -> None:
        """Take in one more turn."""
        if self._open is not None and turn.episode.looked:
            self._open.then(turn.episode.observation)
        if turn.done == "hold" and not turn.episode.failure:
            return
        if self._open is not None and self._open.same(turn):
            self._open.turns += 1
            return
        self.number += 1
        self._open = Decided(self.number, turn)
        self.rows.append(self._open)


def decisions_table(decisions: Decisions) -> str:
    """Return the table of what was decided, each row with a way to its place in time."""
    if not decisions.rows:
        return "<p>Nothing was changed, and nothing wished for.</p>"
    unseen = decisions.number - len(decisions.rows)
    note = f"<p>{unseen} decisions before these are left out.</p>" if unseen else ""
    heads = (
        "time", "done", "processors", "why", "expected", "next turn", "until the next decision",
        "cost",
    )  # fmt: skip
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rows = "\n".join(map(_row, decisions.rows))
    caption = "What was decided, and what came of it"
    return (
        f'{note}<div class="wide"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(each: Decided) -> str:
    decision, expected = each.decision, each.decision.expected
    times = f", {each.turns} turns" if each.turns > 1 else ""
    cells = (
        f"{each.glyph} {each.done}{times}",
        _changed(decision.before.allocation, decision.after.allocation),
        each.reason,
        _seconds(expected.statistic, expected.seconds) if expected else "",
        _seconds(each.statistic, each.next_s),
        _after(each),
        _cost(each),
    )
    whole = plain(f"{decision.before} → {decision.after}")
    short = ' class="short"'
    looks = (short, f' title="{whole}"', "", short, short, "", "")
    told = "".join(
        f"<td{look}>{plain(cell)}</td>" for look, cell in zip(looks, cells, strict=True)
    )
    link = f'<a href="#t{each.number}">{clock(each.at_s)}</a>'
    return f'<tr id="d{each.number}" class="{each.kind}"><th scope="row">{link}</th>{told}</tr>'


def _changed(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    told = [f"{n} {before.get(n, 0)} → {after.get(n, 0)}" for n in names[:_MOST_OPERATORS]]
    if not names:
        return ""
    more = f" and {len(names) - len(told)} more" if len(names) > len(told) else ""
    return f"{', '.join(told)}{more}; all {sum(before.values())} → {sum(after.values())}"


def _seconds(statistic: str, seconds: float | None) -> str:
    if seconds is None or isnan(seconds):
        return ""
    return f"{statistic} {duration(seconds)}"


def _after(each: Decided) -> str:
    if each.after is None:
        return ""
    took = _seconds(each.statistic, measured_s(each.after, each.statistic)) or "no root done"
    return f"{took}, {each.after.arrivals_per_s:.4g} per s for {clock(each.after.lasted_s)}"


def _cost(each: Decided) -> str:
    if each.cost is None:
        return ""
    parts = [
        f"paused {duration(each.cost.pause_s)}" if each.cost.pause_s else "",
        f"{each.cost.replayed} records came again" if each.cost.replayed else "",
    ]
    return ", ".join(filter(None, parts)) or "none"

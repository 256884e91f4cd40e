"""The decisions on the HTML page of a run, with their effect on latency."""

from collections import deque
from math import isfinite, isnan

from sojourn.knowledge import measured_s
from sojourn.measure.observation import Observation
from sojourn.report.text import clock, duration
from sojourn.report.turns import Turn, failed_text

# Longer tables are for programs, which read `history --json`.
_MOST_ROWS = 1000
_MOST_OPERATORS = 8
_GLYPHS = {"up": "▲", "down": "▼", "move": "◆", "nodes": "■", "note": "●"}
_UNDONE_GLYPHS = {"up": "△", "down": "▽", "move": "◇", "nodes": "□", "hold": "✕"}


class Decided:
    """A change, recommendation, failure or order, with the observations until the next.

    A recommendation or refused change recurs every turn; it is one decision that lasts several
    *turns*.
    """

    def __init__(self, number: int, turn: Turn) -> None:
        episode = turn.episode
        self.number, self.turns, self.at_s = number, 1, episode.observation.at_s
        self.done, self.statistic = turn.done, turn.statistic
        self.decision, self.cost = episode.decision, episode.cost
        self.reason = f"{episode.decision.reason}{failed_text(episode)}"
        self.next_s: float | None = None
        self.after: Observation | None = None

    @property
    def kind(self) -> str:
        """Up, down, move or nodes; note for an order; hold if the loop failed."""
        return "note" if self.done == "note" else self.decision.kind

    @property
    def carried_out(self) -> bool:
        """Whether the engine applied the change; True for an order."""
        return self.cost is not None or self.done == "note"

    @property
    def glyph(self) -> str:
        """The symbol of the kind, hollow if it was not carried out."""
        return (_GLYPHS if self.carried_out else _UNDONE_GLYPHS)[self.kind]

    @property
    def changed(self) -> str:
        """The operators that changed, with their processors before and after."""
        before, after = self.decision.before, self.decision.after
        changes = [f"{name} {k} → {n}" for name, (k, n) in before.changes(after).items()]
        if not changes:
            return ""
        left = len(changes) - _MOST_OPERATORS
        more = f" and {left} more" if left > 0 else ""
        listed = ", ".join(changes[:_MOST_OPERATORS])
        return f"{listed}{more}; all {before.processors} → {after.processors}"

    @property
    def expected(self) -> str:
        said = self.decision.expected
        return _seconds(said.statistic, said.seconds) if said else ""

    @property
    def next_turn(self) -> str:
        """The latency measured in the next turn."""
        return _seconds(self.statistic, self.next_s)

    @property
    def until_the_next(self) -> str:
        """The latency and load until the next decision."""
        seen = self.after
        if seen is None:
            return ""
        took = _seconds(self.statistic, measured_s(seen, self.statistic)) or "no root completed"
        return f"{took}, {seen.arrivals_per_s:.4g} per s for {clock(seen.lasted_s)}"

    @property
    def price(self) -> str:
        """The pause and the replayed records."""
        if self.cost is None:
            return ""
        parts = [
            f"paused {duration(self.cost.pause_s)}" if self.cost.pause_s else "",
            f"{self.cost.replayed} records replayed" if self.cost.replayed else "",
        ]
        return ", ".join(filter(None, parts)) or "none"

    def same(self, turn: Turn) -> bool:
        same = turn.episode.decision.after == self.decision.after
        return not self.carried_out and self.done == turn.done and same

    def then(self, seen: Observation) -> None:
        if self.next_s is None:
            self.next_s = measured_s(seen, self.statistic)
        since_s, roots = self.at_s, seen.arrivals_per_s * seen.lasted_s
        if not (seen.usable and isfinite(roots)):
            return
        before, lasted_s = self.after, seen.lasted_s
        completions, sums = seen.completions, seen.sums
        if before is not None:
            # only usable intervals count, both their time and their roots
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
    """The most recent decisions of a run, added turn by turn."""

    def __init__(self) -> None:
        self.number = 0
        self.rows: deque[Decided] = deque(maxlen=_MOST_ROWS)
        self._open: Decided | None = None

    @property
    def left_out(self) -> int:
        """The number of earlier decisions that were dropped."""
        return self.number - len(self.rows)

    def count(self, turn: Turn) -> None:
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


def _seconds(statistic: str, seconds: float | None) -> str:
    if seconds is None or isnan(seconds):
        return ""
    return f"{statistic} {duration(seconds)}"

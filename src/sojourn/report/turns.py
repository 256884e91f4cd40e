"""Turns of the loop: paired with their predictions, folded into lines, and counted."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import isfinite, nan
from statistics import fmean
from typing import TYPE_CHECKING

from sojourn.decide.plan import Expected
from sojourn.decide.target import Target
from sojourn.knowledge import (
    Episode,
    JudgedSlice,
    Knowledge,
    PredictionError,
    measured_s,
)
from sojourn.measure.observation import Observation
from sojourn.text import printable
from sojourn.topology import Topology

if TYPE_CHECKING:
    from sojourn.decide.objective import Objective

_NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]\d+)?")
_MOST_REASONS = 3
_MOST_MISSED = 5
# Kinds of turns that are neither changes nor recommendations.
_NONE = ("hold", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn, and the prediction that the previous decision made for it."""

    episode: Episode
    expected: Expected | None = None
    """None if nothing was predicted, or if the turn cannot be compared with it."""
    statistic: str = "mean"
    """The statistic of the last prediction."""

    @property
    def measured_s(self) -> float:
        """The measured statistic; NaN if no root completed."""
        return measured_s(self.episode.observation, self.statistic)

    @property
    def done(self) -> str:
        return self.episode.done


def turns(episodes: Iterable[Episode], statistic: str = "mean") -> Iterator[Turn]:
    """Yield each episode with the prediction for it.

    *statistic* is used until a decision predicts another.
    """
    expected: Expected | None = None
    for episode in episodes:
        seen, decision = episode.observation, episode.decision
        if not episode.looked and episode.cost is None:
            # an order by hand has no observation: keep the prediction for the next turn
            yield Turn(episode=episode, expected=None, statistic=statistic)
            continue
        said = expected if seen.usable else None
        known = said or decision.expected
        statistic = known.statistic if known else statistic
        yield Turn(episode=episode, expected=said, statistic=statistic)
        carried_out = episode.running == decision.after
        expected = decision.expected if carried_out else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One turn, or several that changed nothing, as a line of a table."""

    at_s: float
    """The end of the last turn."""
    number: int
    """The number of turns."""
    arrivals_per_s: float
    """The mean load."""
    statistic: str
    measured_s: float
    """The statistic over all roots of the turns."""
    expected_s: float
    """The mean of the predictions."""
    allocation: Mapping[str, int]
    done: str
    reason: str


def lines(shown: Iterable[Turn], *, every: bool = False) -> Iterator[Line]:
    """Yield a line for each change, and few lines for the turns between two changes.

    Turns that changed nothing are folded by the text of their reason, ignoring numbers.
    Between two changes each reason occurs once: if it recurs, all turns since its last line
    are merged into one. With *every*, nothing is folded.
    """
    folds: list[_Fold] = []
    for turn in shown:
        fold = _Fold(turn)
        alone = every or turn.episode.cost is not None or turn.done == "note"
        if alone or (folds and folds[0].state != fold.state):
            yield from (each.line() for each in folds)
            folds.clear()
        if alone:
            yield fold.line()
            continue
        # merge with all folds since the one that has the same reason
        again = [n for n, each in enumerate(folds) if each.reasons.keys() & fold.reasons.keys()]
        since = again[0] if again else len(folds)
        folds[since:] = [reduce(_Fold.then, [*folds[since:], fold])]
    yield from (each.line() for each in folds)


class _Fold:
    """Turns of one line.

    *reasons* maps the text of a reason, with its numbers blanked, to its count and last text.
    """

    def __init__(self, turn: Turn) -> None:
        seen, expected = turn.episode.observation, turn.expected
        known = isfinite(seen.arrivals_per_s)
        episode = turn.episode
        reason = printable(f"{episode.decision.reason}{failed_text(episode)}")
        self.last, self.number = turn, 1
        self.state = (turn.done, turn.statistic, dict(turn.episode.running.allocation))
        self.reasons = {_NUMBER.sub("#", reason): (1, reason)}
        self.lasted_s = seen.lasted_s if known else 0.0
        self.roots = seen.arrivals_per_s * seen.lasted_s if known else 0.0
        self.completions, self.sums = seen.completions, seen.sums
        self.expected_s = [] if expected is None else [expected.seconds]

    def then(self, later: "_Fold") -> "_Fold":
        self.last = later.last
        self.number += later.number
        self.lasted_s += later.lasted_s
        self.roots += later.roots
        self.completions, self.sums = (
            self.completions + later.completions,
            self.sums + later.sums,
        )
        self.expected_s += later.expected_s
        for kind, (times, reason) in later.reasons.items():
            before, _ = self.reasons.get(kind, (0, ""))
            self.reasons[kind] = (before + times, reason)
        return self

    def line(self) -> Line:
        """Return the line: load and latency over all turns, and the most frequent reasons."""
        episode, statistic = self.last.episode, self.last.statistic
        whole = Observation(since_s=0, at_s=0, completions=self.completions, sums=self.sums)
        return Line(
            at_s=episode.observation.at_s,
            number=self.number,
            arrivals_per_s=self.roots / self.lasted_s if self.lasted_s > 0 else nan,
            statistic=statistic,
            measured_s=measured_s(whole, statistic),
            expected_s=fmean(self.expected_s) if self.expected_s else nan,
            allocation=episode.running.allocation,
            done=self.last.done,
            reason=self._why(),
        )

    def _why(self) -> str:
        often = sorted(self.reasons.values(), key=lambda each: -each[0])
        if len(often) == 1:
            return often[0][1]
        told = [f"{times} x {reason}" for times, reason in often[:_MOST_REASONS]]
        return " | ".join([*told, *["…"][: len(often) - len(told)]])


def failed_text(episode: Episode) -> str:
    """Return the suffix of a reason: why the engine refused, or why the loop failed."""
    if not episode.failure:
        return ""
    who = "; the engine" if episode.decision.kind != "hold" else ""
    return f"{who}: {episode.failure}"


@dataclass(slots=True)
class Judged:
    """How often, and for how long, the statistic of a target was above the target.

    Turns differ in length, so both turns and seconds are counted.
    """

    measured: int = 0
    above: int = 0
    measured_s: float = 0.0
    above_s: float = 0.0


@dataclass(slots=True)
class Slices:
    """The slices that were judged against an objective."""

    judged: int = 0
    missed: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    """Misses that more processors would not have prevented, by cause."""
    level: float = 0.0
    """The level after the last one."""
    last_missed: deque[JudgedSlice] = field(default_factory=lambda: deque(maxlen=_MOST_MISSED))

    @property
    def causes_text(self) -> str:
        """How many were missed for which cause."""
        excused = [f"{number} because {cause}" for cause, number in self.causes.most_common()]
        others = self.missed - self.causes.total()
        short = [f"{others} by the load"] if others else []
        return "; ".join([*short, *excused])

    def count(self, judged: JudgedSlice) -> None:
        self.judged += 1
        self.missed += not judged.kept
        self.level = judged.level
        if not judged.kept:
            self.last_missed.append(judged)
        if judged.cause:
            self.causes[judged.cause] += 1


class Totals:
    """Totals over turns, which are added one by one.

    Each turn is compared with its own target, or with the target of the run if it has none.
    """

    def __init__(self, topology: Topology, target: Target | None) -> None:
        self._topology, self._target = topology, target
        self._before: Episode | None = None
        self.error: PredictionError | None = None
        self.errors: dict[str, PredictionError] = {}
        self.turns = self.unusable = self.replayed = 0
        self.judged: dict[Target, Judged] = {}
        self.slices: dict[Objective, Slices] = {}
        self.lasted_s = self.pause_s = 0.0
        self.done: Counter[str] = Counter()

    def counting(self, passing: Iterable[Turn]) -> Iterator[Turn]:
        """Count each turn before yielding it."""
        for turn in passing:
            self.count(turn)
            yield turn

    @property
    def changes(self) -> int:
        """The number of changes of processors that were carried out."""
        return sum(self.done[kind] for kind in ("up", "down", "move"))

    @property
    def kinds(self) -> str:
        """The number of changes and recommendations of each kind."""
        return ", ".join(f"{n} {done}" for done, n in self.done.items() if done not in _NONE)

    @property
    def all_errors(self) -> dict[str, PredictionError]:
        return {**({"latency": self.error} if self.error else {}), **self.errors}

    def count(self, turn: Turn) -> None:
        episode, cost = turn.episode, turn.episode.cost
        seen = episode.observation
        self.turns += episode.looked
        self.unusable += episode.looked and not seen.usable
        self.lasted_s += seen.lasted_s
        self.done[turn.done] += 1
        if cost is not None:
            self.pause_s += cost.pause_s
            self.replayed += cost.replayed
        for judged_slice in episode.judged:
            self.slices.setdefault(judged_slice.objective, Slices()).count(judged_slice)
        target = episode.target or self._target
        if target is not None and isfinite(s := measured_s(seen, target.statistic)):
            judged = self.judged.setdefault(target, Judged())
            above = s > target.seconds
            judged.measured += 1
            judged.above += above
            judged.measured_s += seen.lasted_s
            judged.above_s += above * seen.lasted_s
        if episode.looked or cost is not None:
            self._compare(episode)

    def _compare(self, episode: Episode) -> None:
        """Add the error of the prediction that the previous episode made for this one."""
        before, self._before = self._before, episode
        if before is None:
            return
        two = Knowledge(
            topology=self._topology, plan=episode.running, episodes=(before, episode)
        )
        if (error := two.prediction_error()) is not None:
            self.error = error if self.error is None else self.error + error
        for name, each in two.prediction_errors().items():
            self.errors[name] = self.errors[name] + each if name in self.errors else each

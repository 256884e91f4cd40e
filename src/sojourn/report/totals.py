"""Totals over the turns of a run: changes, pauses, missed targets, prediction errors."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

from sojourn.decide.target import Target
from sojourn.knowledge import Episode, Knowledge, PredictionError, measured_s
from sojourn.report.turns import Turn
from sojourn.topology import Topology

__all__ = ["Judged", "Totals"]

# Kinds of turns that are neither changes nor recommendations.
_NONE = ("hold", "note")


@dataclass(slots=True)
class Judged:
    """How often, and for how long, the statistic of a target was above the target.

    Turns differ in length, so both turns and seconds are counted.
    """

    measured: int = 0
    above: int = 0
    measured_s: float = 0.0
    above_s: float = 0.0


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
        """The prediction errors of the latency, and of each operator."""
        return {**({"latency": self.error} if self.error else {}), **self.errors}

    def count(self, turn: Turn) -> None:
        """Add a turn to the totals."""
        episode, cost = turn.episode, turn.episode.cost
        seen = episode.observation
        self.turns += episode.looked
        self.unusable += episode.looked and not seen.usable
        self.lasted_s += seen.lasted_s
        self.done[turn.done] += 1
        if cost is not None:
            self.pause_s += cost.pause_s
            self.replayed += cost.replayed
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

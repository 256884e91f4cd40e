"""Objectives of several levels on the same load, and what each of them takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sojourn.act.policy import Policy
from sojourn.knowledge import Episode
from sojourn.measure.interval import Interval
from sojourn.report.comparison import outcomes

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage

LEVELS = (0.9, 0.95, 0.99, 0.995, 0.999)
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A part of the slices in which a target must be kept, and the results for it."""

    required: float
    kept: Interval
    """The part of the slices in which it was kept."""
    slices: int
    """The slices that were judged, of all seeds."""
    processors: Interval
    """The processors held on average."""
    changes_per_hour: Interval
    worst_s: float
    """The target's statistic in the worst slice; NaN if no root completed."""

    def price(self, per_hour: float) -> float:
        """Return the price per day, if a processor costs *per_hour*."""
        return 24 * per_hour * self.processors.value


def levels(
    stage: "Stage",
    policy: Policy,
    parts: Sequence[float],
    seeds: int,
    *,
    turn: Callable[[float, int, Episode], None] = lambda _part, _seed, _episode: None,
) -> list[Level]:
    """Rehearse *policy* for each part of the slices, with the seeds from 1 to *seeds*.

    *turn* is called with part, seed and episode after each turn.
    """
    return [_level(stage, policy, part, seeds, partial(turn, part)) for part in parts]


def _level(
    stage: "Stage",
    policy: Policy,
    part: float,
    seeds: int,
    turn: Callable[[int, Episode], None],
) -> Level:
    asked = replace(stage, objective=replace(stage.objective, kept=part))
    (outcome,) = outcomes(
        asked, {"": policy}, seeds, turn=lambda _policy, seed, episode: turn(seed, episode)
    )
    hours = stage.lasts_s / _HOUR_S
    return Level(
        required=part,
        kept=outcome.estimate("kept"),
        slices=sum(score.slices for score in outcome.scores),
        processors=Interval.over([s.processor_hours / hours for s in outcome.scores]),
        changes_per_hour=Interval.over([s.changes / hours for s in outcome.scores]),
        worst_s=outcome.worst_s,
    )

"""Policies on the same stage: what each came to over several seeds, and which are worth it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sojourn.act.policy import Policy
from sojourn.knowledge import Episode
from sojourn.measure.interval import Interval
from sojourn.plan import Plan
from sojourn.rehearsal import Rehearsal, Score, Stage, rehearse
from sojourn.report.parquet import roots_to_parquet

__all__ = ["HIGHEST", "Outcome", "dominating", "outcomes", "unfinished"]

# A policy that changes nothing must be started with what the highest load needs.
HIGHEST = "static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a policy came to over several seeds.

    *starts_for* is the load that it was started for. *windows_s* has the statistic in each
    window, by seed; *processors* are those of the first seed, from each time on.
    """

    policy: str
    start: Plan
    starts_for: float
    scores: Sequence[Score]
    windows_s: Sequence[NDArray[np.float64]]
    processors: Sequence[tuple[float, int]]

    def estimate(self, field: str) -> Interval:
        """Return the mean of a field of the scores, and its half-width; NaN of none known."""
        return Interval.over(self._known(field))

    @property
    def worst_s(self) -> float:
        """The statistic of the worst window of all; NaN where no root completed."""
        return max(self._known("worst_s"), default=nan)

    def _known(self, field: str) -> list[float]:
        values: list[float] = [getattr(score, field) for score in self.scores]
        return [value for value in values if not isnan(value)]


def outcomes(
    stage: Stage,
    policies: Mapping[str, Policy],
    seeds: int,
    *,
    export: Path | None = None,
    turn: Callable[[str, int, Episode], None] = lambda _policy, _seed, _episode: None,
) -> list[Outcome]:
    """Return what each of the policies, by name, comes to with seeds from 1 on.

    *turn* is told each turn of the loop; every root is written to a file in *export*.
    """
    made = []
    for name, decides in policies.items():
        starts_for = stage.highest_per_s if name == HIGHEST else stage.rates.at(0.0)
        start = stage.plan(starts_for)
        runs = []
        for seed in range(1, seeds + 1):
            path = None if export is None else export / f"{name}-{seed}.parquet"
            with nullcontext(_nothing) if path is None else roots_to_parquet(path) as write:
                run = rehearse(
                    stage,
                    decides,
                    start=start,
                    seed=seed,
                    turn=partial(turn, name, seed),
                    roots=partial(write, 0.0),
                )
            # of the turns nothing is needed but for one picture, and they are large
            runs.append((run.score, run.windows_s, _processors(run) if seed == 1 else []))
        made.append(
            Outcome(
                policy=name,
                start=start,
                starts_for=starts_for,
                scores=[score for score, _, _ in runs],
                windows_s=[windows_s for _, windows_s, _ in runs],
                processors=runs[0][2],
            )
        )
    return made


def dominating(outcome: Outcome, others: Iterable[Outcome]) -> list[str]:
    """Return the policies that have no more time outside and processors, and less of one."""
    here = _means(outcome)
    there = {other.policy: _means(other) for other in others}
    return [
        name
        for name, means in there.items()
        if means != here and all(m <= h for m, h in zip(means, here, strict=True))
    ]


def unfinished(outcome: Outcome) -> int:
    """Return the roots that were not done long after the end, of all seeds."""
    return sum(score.unfinished for score in outcome.scores)


def _means(outcome: Outcome) -> tuple[float, float]:
    return outcome.estimate("outside").value, outcome.estimate("processor_hours").value


def _processors(run: Rehearsal) -> list[tuple[float, int]]:
    return [(e.observation.since_s, e.decision.before.processors) for e in run.episodes]


def _nothing(_part: float, _roots: NDArray[np.void]) -> None:
    pass

"""Results of several policies on the same load and seeds, and their Pareto front."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sojourn.act.policy import Policy
from sojourn.decide.plan import Plan
from sojourn.knowledge import Episode
from sojourn.measure.interval import Interval
from sojourn.report.parquet import roots_to_parquet

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Score, Stage

# This policy changes nothing, so it starts with the plan for the highest load.
HIGHEST = "static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The results of a policy over several seeds."""

    policy: str
    start: Plan
    starts_for: float
    """Roots per second that *start* is planned for."""
    scores: Sequence["Score"]
    slices_s: Sequence[NDArray[np.float64]]
    """The statistic of each time slice; one array per seed."""
    processors: Sequence[tuple[float, int]]
    """Time and processors at the start of each turn, of the first seed."""

    def estimate(self, field: str) -> Interval:
        """Return the mean and half-width of a field of the scores, NaN where unknown."""
        return Interval.over(self._known(field))

    @property
    def worst_s(self) -> float:
        """The statistic of the worst slice of all seeds; NaN if no root completed."""
        return max(self._known("worst_s"), default=nan)

    def _known(self, field: str) -> list[float]:
        values: list[float] = [getattr(score, field) for score in self.scores]
        return [value for value in values if not isnan(value)]


def outcomes(
    stage: "Stage",
    policies: Mapping[str, Policy],
    seeds: int,
    *,
    export: Path | None = None,
    starts: Mapping[str, float] | None = None,
    turn: Callable[[str, int, Episode], None] = lambda _policy, _seed, _episode: None,
) -> list[Outcome]:
    """Rehearse each policy with the seeds from 1 to *seeds*, and return their results.

    *starts* has the rates that policies start for, instead of the first one, or for static the
    highest. *turn* is called with policy, seed and episode after each turn. If *export* is
    given, the roots of each run are written to a Parquet file in that folder.
    """
    from sojourn.simulate.rehearsal import rehearse  # noqa: PLC0415 - numba is optional

    made = []
    for name, decides in policies.items():
        default = stage.highest_per_s if name == HIGHEST else stage.rates.at(0.0)
        starts_for = (starts or {}).get(name, default)
        start = stage.plan(starts_for)
        scores, slices_s = list["Score"](), list[NDArray[np.float64]]()
        for seed in range(1, seeds + 1):
            path = None if export is None else export / f"{name}-{seed}.parquet"
            with roots_to_parquet(path) as write:
                run = rehearse(
                    stage,
                    decides,
                    start=start,
                    seed=seed,
                    turn=partial(turn, name, seed),
                    roots=partial(write, 0.0),
                )
            scores.append(run.score)
            slices_s.append(run.slices_s)
            if seed == 1:  # episodes are large: keep only the numbers that the plot shows
                processors = [
                    (e.observation.since_s, e.decision.before.processors) for e in run.episodes
                ]
        made.append(
            Outcome(
                policy=name,
                start=start,
                starts_for=starts_for,
                scores=scores,
                slices_s=slices_s,
                processors=processors,
            )
        )
    return made


def dominating(outcome: Outcome, others: Iterable[Outcome]) -> list[str]:
    """Return the policies that dominate *outcome*: as often within the target, as cheap.

    A policy with equal means in both does not dominate.
    """
    here = _means(outcome)
    there = {other.policy: _means(other) for other in others}
    return [
        name
        for name, means in there.items()
        if means != here and all(m <= h for m, h in zip(means, here, strict=True))
    ]


def unfinished(outcome: Outcome) -> int:
    return sum(score.unfinished for score in outcome.scores)


def _means(outcome: Outcome) -> tuple[float, float]:
    return -outcome.estimate("kept").value, outcome.estimate("processor_hours").value

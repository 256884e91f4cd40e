"""What a policy would have done: a loop on the simulator over loads that change, and its score.

The score is taken from every root, not from what the loop saw of them, and a root counts
where it was born: a backlog makes those late that waited in it, whenever they are done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import nan

import numpy as np
from numpy.typing import NDArray

from sojourn.act.aim import Aim, Goal, aim
from sojourn.act.policy import Policy
from sojourn.decide.target import Target
from sojourn.errors import BadWorkload
from sojourn.knowledge import Episode, Knowledge
from sojourn.loop import ACTIVE, PASSIVE, Loop
from sojourn.model.network import PERCENTILES
from sojourn.plan import Plan
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload
from sojourn.topology import Topology

__all__ = ["Rehearsal", "Score", "Stage", "rehearse"]

# When the load has ended, what is still in flight may take this many times as long again.
_MOST_DRAINING = 2.0
# Each window has a number, and shorter ones than these are a slip of the unit.
_MOST_WINDOWS = 1e7

Roots = Callable[[NDArray[np.void]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where policies are tried: a topology, the load over time, and what is promised.

    *rates* are all roots from outside; arrivals share them as the topology has it. *pause_s*
    is what a change costs each operator that changes. Latency is judged in windows of
    *window_s*. *midnight_s* is the time of the day when it begins.
    """

    topology: Topology
    rates: Rates
    target: Target
    every_s: float = 10.0
    window_s: float = 60.0
    pause_s: float = 0.0
    most: int | None = None
    midnight_s: float = 0.0
    sample_every: int = 20
    workload: Workload = field(default_factory=Workload)

    def __post_init__(self) -> None:
        for name in ("every_s", "window_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise BadWorkload(f"{name} of {getattr(self, name)} s; write more than 0")
        if not 0 <= self.pause_s < float("inf"):
            raise BadWorkload(f"changes that pause for {self.pause_s} s; write 0 or more")
        if not self.lasts_s >= self.every_s:
            raise BadWorkload(
                f"a load of {self.lasts_s:g} s is over before the first look after "
                f"{self.every_s:g} s; give a longer one"
            )
        if self.lasts_s > _MOST_WINDOWS * self.window_s:
            raise BadWorkload(
                f"{self.lasts_s:g} s in windows of {self.window_s:g} s are too many; "
                "judge longer windows"
            )

    @property
    def lasts_s(self) -> float:
        """How long the load is known."""
        return self.rates.points[-1][0]

    @property
    def highest_per_s(self) -> float:
        """The highest rate of the load."""
        return max(per_s for _, per_s in self.rates.points)

    @property
    def unmet(self) -> str:
        """What no policy can keep at the highest rate; nothing where all can be kept."""
        note = self._aimed(self.highest_per_s).note
        return f"at {self.highest_per_s:g} per s: {note}" if note else ""

    def plan(self, per_s: float) -> Plan:
        """Return the plan of the fewest processors that meet the target at a load."""
        reason = f"the fewest for {self.target} at {per_s:g} per s"
        return Plan.here(self._aimed(per_s).allocation, reason=reason)

    def _aimed(self, per_s: float) -> Aim:
        load = self.topology.scaled(max(per_s, 1e-3) / self.topology.arrivals_per_s)
        return aim(load, Goal(target=self.target, most=self.most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a policy came to.

    *outside* is the part of the time in which the target was missed, *worst_s* the statistic
    of the worst window, *unfinished* the roots that were not done long after the end.
    """

    seed: int
    outside: float
    processor_hours: float
    changes: int
    worst_s: float
    unfinished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A run: its score, each turn of the loop, and the statistic in each window."""

    score: Score
    episodes: Sequence[Episode]
    windows_s: NDArray[np.float64]


def rehearse(  # noqa: PLR0913 - a run is told by name what differs from the usual
    stage: Stage,
    policy: Policy,
    *,
    start: Plan | None = None,
    seed: int = 1,
    active: bool = True,
    turn: Callable[[Episode], None] = lambda _episode: None,
    roots: Roots = lambda _roots: None,
) -> Rehearsal:
    """Return what *policy* does on *stage*, started with *start* or what the first load needs.

    A loop that is not *active* only recommends. *turn* is called after each turn of the loop,
    *roots* with the roots that completed, in an array that is good until it returns.
    """
    births, times = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    column = "sum_s" if stage.target.statistic == "mean" else "completion_s"

    def each(done: NDArray[np.void]) -> None:
        births.append(done["birth_s"].copy())
        times.append(done[column].copy())
        roots(done)

    engine = Simulator(
        workload=_ending(stage),
        seed=seed,
        pause_s=stage.pause_s,
        sample_every=stage.sample_every,
        bin_s=stage.every_s / 30,
        each=each,
    )
    first = stage.rates.at(0.0)
    declared = stage.topology.scaled(max(first, 1e-3) / stage.topology.arrivals_per_s)
    episodes: list[Episode] = []
    with engine:
        engine.start(declared, start or stage.plan(first))
        known = Knowledge(topology=declared, plan=engine.plan, midnight_s=stage.midnight_s)
        mode = ACTIVE if active else PASSIVE
        loop = Loop(engine, declared, policy, every_s=stage.every_s, mode=mode, knowledge=known)
        for episode in loop.run(stage.lasts_s):
            episodes.append(episode)
            turn(episode)
        unfinished = _drained(engine, stage, sum(len(part) for part in births), episodes)
    windows_s = _windows_s(stage, np.concatenate(births), np.concatenate(times))
    return Rehearsal(
        score=_score(stage, seed, episodes, windows_s, unfinished),
        episodes=episodes,
        windows_s=windows_s,
    )


def _ending(stage: Stage) -> Workload:
    """Return the workload whose rates are those of the stage, and 0 when it is over."""
    ended = Rates((*stage.rates.points, (stage.lasts_s, 0.0)))
    whole = stage.topology.arrivals_per_s
    return replace(
        stage.workload,
        rates={a.name: ended.times(a.per_s / whole) for a in stage.topology.arrivals},
    )


def _drained(
    engine: Simulator, stage: Stage, completed: int, episodes: Sequence[Episode]
) -> int:
    """Let what is in flight complete, and return how many roots do not."""
    entered = round(
        sum(
            e.observation.arrivals_per_s * e.observation.lasted_s
            for e in episodes
            if e.observation.usable
        )
    )
    at_s = engine.now_s
    while completed < entered and at_s < _MOST_DRAINING * stage.lasts_s:
        at_s += 10 * stage.every_s
        pull = engine.observe(at_s)
        completed += pull.roots.completed
        entered += pull.roots.entered
    return max(0, entered - completed)


def _windows_s(
    stage: Stage, births: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the target's statistic of the roots born in each window; NaN of none."""
    number = int(np.ceil(stage.lasts_s / stage.window_s))
    window = np.minimum((births / stage.window_s).astype(np.int64), number - 1)
    order = np.lexsort((times, window))
    sorted_s, ends = times[order], np.searchsorted(window[order], np.arange(number + 1))
    statistic = np.full(number, nan)
    for i, (begin, end) in enumerate(pairwise(ends)):
        if end > begin:
            statistic[i] = _statistic(sorted_s[begin:end], stage.target.statistic)
    return statistic


def _statistic(sorted_s: NDArray[np.float64], statistic: str) -> float:
    if statistic == "mean":
        return float(sorted_s.mean())
    return float(sorted_s[int(np.ceil(PERCENTILES[statistic] * len(sorted_s))) - 1])


def _score(
    stage: Stage,
    seed: int,
    episodes: Sequence[Episode],
    windows_s: NDArray[np.float64],
    unfinished: int,
) -> Score:
    told = windows_s[~np.isnan(windows_s)]
    held = sum(e.decision.before.processors for e in episodes)
    return Score(
        seed=seed,
        outside=float((told > stage.target.seconds).mean()) if len(told) else 0.0,
        processor_hours=held * stage.every_s / 3600,
        changes=sum(e.cost is not None and bool(e.cost.changed) for e in episodes),
        worst_s=float(told.max()) if len(told) else nan,
        unfinished=unfinished,
    )

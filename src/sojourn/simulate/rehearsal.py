"""Rehearsal of a policy: the loop on the simulator under a changing load, and its score.

The score is based on every root, not only on those that the loop measured. A root counts in the
time slice in which it was born, however late it completes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, pairwise
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from sojourn.act.best_effort_plan import Aim, Goal, aim
from sojourn.act.node_scaling import NodeBounds
from sojourn.act.policy import Policy
from sojourn.decide.objective import (
    Objective,
    Slice,
    few_roots,
    joined,
    late_alone,
    least_roots,
)
from sojourn.decide.place import Placer
from sojourn.decide.place.round_robin import place as round_robin
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.errors import BadWorkload
from sojourn.history import Run
from sojourn.knowledge import Episode, ErrorBudget, Knowledge
from sojourn.loop import ACTIVE, PASSIVE, Loop
from sojourn.model.network import PERCENTILES
from sojourn.simulate.nodes import NodeSettings
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload
from sojourn.topology import Topology

# Records in flight at the end of the load are simulated until this multiple of its duration.
_MOST_DRAINING = 2.0
# Results are kept for each slice; a larger number is due to a wrong unit.
_MOST_SLICES = 1e7
_HOUR_S = 3600.0
# The load that a number of processors carries is found to this part of the highest.
_REACH = 0.005

Roots = Callable[[NDArray[np.void]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The scenario for policies: a topology, the load over time, and the objective."""

    topology: Topology
    rates: Rates
    """The rate of all roots; arrivals share it in proportion to the topology."""
    objective: Objective
    every_s: float = nan
    """Time between two observations; by default as often as the objective needs."""
    pause_s: float = 0.0
    """Pause of each operator that a plan changes."""
    starts_s: float = 0.0
    """Time until a processor that is added can take records."""
    most: int | None = None
    """Maximum number of processors."""
    midnight_s: float = 0.0
    """Time of day at the start, in seconds after midnight."""
    sample_every: int = 20
    """One record in this many is timed."""
    workload: Workload = field(default_factory=Workload)
    placer: Placer = round_robin
    bounds: NodeBounds | None = None
    """Bounds for nodes, which the loop then requests and releases; at the start there are as
    many as the first processors need."""
    node_adding_s: float = 0.0
    """Time to add a node."""

    def __post_init__(self) -> None:
        if isnan(self.every_s):
            object.__setattr__(self, "every_s", self.objective.every_s)
        if not 0 < self.every_s < float("inf"):
            raise BadWorkload(f"every_s is {self.every_s}; write more than 0")
        if not 0 <= self.pause_s < float("inf"):
            raise BadWorkload(f"pause_s is {self.pause_s}; write 0 or more")
        if not 0 <= self.starts_s < float("inf"):
            raise BadWorkload(f"starts_s is {self.starts_s}; write 0 or more")
        if not self.lasts_s >= self.every_s:
            raise BadWorkload(
                f"the load lasts {self.lasts_s:g} s, but the first look is after "
                f"{self.every_s:g} s; give a longer load"
            )
        if self.lasts_s > _MOST_SLICES * self.objective.slice_s:
            raise BadWorkload(
                f"{self.lasts_s:g} s have too many slices of {self.objective.slice_s:g} s; "
                "use longer ones"
            )

    @property
    def target(self) -> Target:
        return self.objective.target

    @property
    def least_roots(self) -> int:
        """The fewest roots with which a slice is judged by itself."""
        return least_roots(
            self.objective, late_alone(self.loaded(self.highest_per_s), self.target)
        )

    @property
    def lasts_s(self) -> float:
        return self.rates.points[-1][0]

    @property
    def highest_per_s(self) -> float:
        return max(per_s for _, per_s in self.rates.points)

    @property
    def notes(self) -> tuple[str, ...]:
        """The reasons why the objective may be missed, whatever the policy does."""
        unmet = self._aimed(self.highest_per_s).note
        at_most = f"at {self.highest_per_s:g} per s: {unmet}" if unmet else ""
        objective, mean_per_s = self.objective, self.rates.mean_per_s
        notes = (
            at_most,
            self._within_reach(),
            objective.too_seldom(self.every_s),
            objective.pause_note(self.pause_s),
            few_roots(objective, self.loaded(mean_per_s)),
        )
        return tuple(filter(None, notes))

    def _within_reach(self) -> str:
        """Return the note on slices whose load is too much for `most`; empty without any."""
        if self.most is None or self._aimed(self.highest_per_s).error is None:
            return ""
        carried_per_s, too_many_per_s = 0.0, self.highest_per_s
        while too_many_per_s - carried_per_s > _REACH * self.highest_per_s:
            middle_per_s = (carried_per_s + too_many_per_s) / 2
            if self._aimed(middle_per_s).error is None:
                carried_per_s = middle_per_s
            else:
                too_many_per_s = middle_per_s
        if carried_per_s == 0:
            return ""
        times_s, per_s = np.array(self.rates.points).T
        slices_s = np.arange(self.objective.slice_s / 2, self.lasts_s, self.objective.slice_s)
        part = float(np.mean(np.interp(slices_s, times_s, per_s) <= carried_per_s))
        return (
            f"{self.most} processors carry {carried_per_s:.3g} per s, so the target can be "
            f"kept in about {part:.0%} of the slices"
        )

    def lasting(self, seconds: float) -> "Stage":
        """Return the stage with its load repeated, or cut, so that it lasts for some time."""
        return replace(self, rates=self.rates.repeated(seconds))

    def plan(self, per_s: float) -> Plan:
        """Return the plan with the fewest processors that meet the target at a load."""
        reason = f"the fewest for {self.target} at {per_s:g} per s"
        return Plan.here(self._aimed(per_s).allocation, reason=reason)

    def nodes(self, first: Plan) -> NodeSettings | None:
        """Return the nodes at the start; None if they are fixed."""
        if self.bounds is None:
            return None
        number = self.bounds.holding(first.processors)
        return NodeSettings(first=number, adding_s=self.node_adding_s)

    def begun(self, policy: str, at: datetime) -> Run:
        """Return the record of a run of *policy* for the history."""
        first = self.rates.at(0.0)
        return Run(
            topology=self.loaded(first),
            plan=self.plan(first),
            started_at=at,
            every_s=self.every_s,
            policy=policy,
            target=self.target,
            midnight_s=self.midnight_s,
        )

    def _aimed(self, per_s: float) -> Aim:
        return aim(self.loaded(per_s), Goal(target=self.target, most=self.most))

    def loaded(self, per_s: float) -> Topology:
        return self.topology.scaled(max(per_s, 1e-3) / self.topology.arrivals_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    seed: int
    kept: float
    """Part of the judged slices in which the target was kept; NaN if none was judged."""
    slices: int
    """Number of judged slices. Those with few roots are joined."""
    processor_hours: float
    changes: int
    """Number of changes of the allocation."""
    worst_s: float
    """The target's statistic in the worst slice."""
    unfinished: int = 0
    """Roots that did not complete even long after the end of the load."""
    node_hours: float | None = None
    """Accumulated time of all nodes; None if nodes are fixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    score: Score
    episodes: Sequence[Episode]
    """The turns of the loop."""
    slices: Sequence[Slice]
    """The judged slices."""
    slices_s: NDArray[np.float64]
    """The target's statistic in each slice, before any are joined; NaN without roots."""
    budget: ErrorBudget | None
    """The error budget of the loop at the end."""


def rehearse(  # noqa: PLR0913 - optional settings by name, with defaults
    stage: Stage,
    policy: Policy,
    *,
    start: Plan | None = None,
    seed: int = 1,
    active: bool = True,
    turn: Callable[[Episode], None] = lambda _episode: None,
    roots: Roots = lambda _roots: None,
) -> Rehearsal:
    """Run *policy* on *stage*, from *start* or from the plan for the first load.

    A loop that is not *active* only recommends. *turn* is called after each turn of the loop,
    *roots* with an array of completed roots that is valid only during the call.
    """
    births, times = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    column = "sum_s" if stage.target.statistic == "mean" else "completion_s"

    def each(done: NDArray[np.void]) -> None:
        births.append(done["birth_s"].copy())
        times.append(done[column].copy())
        roots(done)

    first = stage.rates.at(0.0)
    begun = start or stage.plan(first)
    engine = Simulator(
        workload=_ending(stage),
        seed=seed,
        pause_s=stage.pause_s,
        starts_s=stage.starts_s,
        sample_every=stage.sample_every,
        bin_s=stage.every_s / 30,
        each=each,
        nodes=stage.nodes(begun),
    )
    declared = stage.loaded(first)
    episodes: list[Episode] = []
    with engine:
        engine.start(declared, begun)
        known = Knowledge(topology=declared, plan=engine.plan, midnight_s=stage.midnight_s)
        loop = Loop(
            engine,
            declared,
            policy,
            every_s=stage.every_s,
            mode=ACTIVE if active else PASSIVE,
            knowledge=known,
            placer=stage.placer,
            bounds=stage.bounds,
            objective=stage.objective,
        )
        # the first plan does not assign nodes
        for episode in chain(loop.follow_nodes(), loop.run(stage.lasts_s)):
            episodes.append(episode)
            turn(episode)
        node_s = engine.node_s
        unfinished = _drained(engine, stage, sum(len(part) for part in births), episodes)
    slices, slices_s = _slices(stage, np.concatenate(births), np.concatenate(times))
    judged = list(joined(slices, stage.least_roots))
    kept = sum(map(stage.objective.keeps, judged)) / len(judged) if judged else nan
    known_s = slices_s[~np.isnan(slices_s)]
    held = sum(e.decision.before.processors for e in episodes if e.looked)
    score = Score(
        seed=seed,
        kept=kept,
        slices=len(judged),
        processor_hours=held * stage.every_s / _HOUR_S,
        changes=sum(e.cost is not None and bool(e.cost.changed) for e in episodes),
        worst_s=float(known_s.max()) if len(known_s) else nan,
        unfinished=unfinished,
        node_hours=None if node_s is None else node_s / _HOUR_S,
    )
    return Rehearsal(
        score=score,
        episodes=episodes,
        slices=judged,
        slices_s=slices_s,
        budget=loop.knowledge.budget,
    )


def _ending(stage: Stage) -> Workload:
    """Return the workload with the rates of the stage, followed by a rate of 0."""
    ended = Rates((*stage.rates.points, (stage.lasts_s, 0.0)))
    return replace(stage.workload, rates=ended.among(stage.topology.arrivals))


def _drained(
    engine: Simulator, stage: Stage, completed: int, episodes: Sequence[Episode]
) -> int:
    """Simulate until records in flight complete, and return the roots that do not."""
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


def _slices(
    stage: Stage, births: NDArray[np.float64], times: NDArray[np.float64]
) -> tuple[list[Slice], NDArray[np.float64]]:
    """Return the slices by birth, and the target's statistic in each; NaN without roots.

    Roots that did not complete are not among *births*: they are counted, as unfinished.
    """
    slice_s, target = stage.objective.slice_s, stage.target
    number = int(np.ceil(stage.lasts_s / slice_s))
    born_in = np.minimum((births / slice_s).astype(np.int64), number - 1)
    order = np.lexsort((times, born_in))
    sorted_s, ends = times[order], np.searchsorted(born_in[order], np.arange(number + 1))
    slices, statistic = list[Slice](), np.full(number, nan)
    for i, (begin, end) in enumerate(pairwise(ends)):
        here = sorted_s[begin:end]
        slices.append(
            Slice(
                since_s=i * slice_s,
                until_s=min((i + 1) * slice_s, stage.lasts_s),
                born=len(here),
                in_time=int(np.searchsorted(here, target.seconds, side="right")),
                sum_s=float(here.sum()),
            )
        )
        if len(here):
            statistic[i] = _statistic(here, target.statistic)
    return slices, statistic


def _statistic(sorted_s: NDArray[np.float64], statistic: str) -> float:
    if statistic == "mean":
        return float(sorted_s.mean())
    return float(sorted_s[int(np.ceil(PERCENTILES[statistic] * len(sorted_s))) - 1])

"""The knowledge of the loop: the last episodes, the measured topology, the error budget."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from math import ceil, inf, isfinite
from statistics import median

from sojourn.decide.objective import Objective, late_alone
from sojourn.decide.plan import Expected, Plan
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.knowledge.episode import Decision, Episode
from sojourn.knowledge.error_budget import ErrorBudget
from sojourn.knowledge.prediction_error import PredictionError
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.observation import Observation
from sojourn.measure.observed import measured
from sojourn.measure.smooth import timed_longer
from sojourn.model.network import PERCENTILES
from sojourn.topology import Topology

STARTS_S = 30.0
"""Processors that are missing for longer than this were lost, or do not start."""

# Pauses change with the engine, caches and state, so only the last few are averaged.
_LAST_CHANGES = 5
# The end of a batch is in at most this many looks.
_END_OF_BATCH = 2
# Decisions are remembered for this time, however often the loop looks; of those that have left
# the last episodes and changed nothing, one in this interval is enough.
_REMEMBERED_S, _APART_S = 2400.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNeed:
    """How long the number of nodes has been wrong; None while it is right."""

    more_since_s: float | None = None
    """When more nodes were first needed."""
    fewer_since_s: float | None = None
    """When fewer nodes were first needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The input of decisions. Immutable: `saw` and `did` return extended copies.

    The measured topology is computed once per look; a policy that decides on an average of
    several looks calls `measured` on that average.
    """

    topology: Topology
    """The measured topology: rates of the last observation, steady service times averaged."""
    plan: Plan
    """The running plan."""
    episodes: tuple[Episode, ...] = ()
    """The last *keep* episodes, oldest first."""
    earlier: tuple[Episode, ...] = ()
    """Episodes before them: all changes, and one in some seconds of the others."""
    seen: Observation | None = None
    """The observation to decide on; None after the decision."""
    pauses_s: tuple[float, ...] = ()
    """The pauses of the last few changes, however long ago."""
    changed_at_s: float = 0.0
    """When processors last changed, on the engine's clock."""
    midnight_s: float = 0.0
    """The time of day when the engine's clock was 0."""
    budget: ErrorBudget | None = None
    """The error budget; None without an objective."""
    node_need: NodeNeed = field(default_factory=NodeNeed)
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    """The node costs observed last."""
    keep: int = 240
    """Episodes to keep."""

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise BadInput(f"keep is {self.keep} turns; write 1 or more")

    @property
    def allocation(self) -> Mapping[str, int]:
        return self.plan.allocation

    @property
    def at_s(self) -> float:
        """The end of the last observation."""
        return 0.0 if self.seen is None else self.seen.at_s

    @property
    def observations(self) -> tuple[Observation, ...]:
        """The observations, oldest first; the last is the one to decide on, if there is one."""
        past = tuple(episode.observation for episode in self.episodes)
        return past if self.seen is None else (*past, self.seen)

    @property
    def remembered(self) -> tuple[Episode, ...]:
        """The episodes by which a policy avoids undoing its changes, oldest first."""
        return (*self.earlier, *self.episodes)

    @property
    def pause_s(self) -> float:
        """The median pause of the last few changes; 0 before the first."""
        return median(self.pauses_s) if self.pauses_s else 0.0

    def keeping(self, objective: Objective) -> "Knowledge":
        """Return the knowledge with *objective*, whose budget begins with the next slice.

        The level stays, unless there was none.
        """
        budget = ErrorBudget(objective=objective, since=ceil(self.at_s / objective.slice_s))
        if self.budget is not None:
            budget = replace(budget, level=self.budget.level)
        return replace(self, budget=budget)

    def saw(self, observation: Observation) -> "Knowledge":
        """Return the knowledge with *observation* as the one to decide on."""
        topology, costs, budget = self.topology, self.node_costs, self.budget
        if observation.usable:
            costs = observation.node_costs
            history = (*self.observations, observation)
            topology = measured(topology, timed_longer(observation, history))
        if budget is not None:
            objective = budget.objective
            budget = budget.saw(
                observation.since_s,
                observation.at_s,
                observation.births,
                late_alone=lambda: late_alone(topology, objective.target),
                cause="" if observation.usable else "metrics were not usable",
            )
        return replace(
            self, topology=topology, seen=observation, node_costs=costs, budget=budget
        )

    def did(
        self, decision: Decision, cost: Cost | None = None, failure: str = ""
    ) -> "Knowledge":
        """Return the knowledge after *decision*, which was applied if it has a *cost*."""
        if self.seen is None:
            raise BadInput("there is no observation to decide on; call saw() first")
        budget, pauses_s = self.budget, self.pauses_s
        if cost is not None:
            pauses_s = (*pauses_s, cost.pause_s)[-_LAST_CHANGES:]
        episode = Episode(
            observation=self.seen,
            decision=decision,
            cost=cost,
            failure=failure,
            judged=() if budget is None else budget.latest,
        )
        episodes = (*self.episodes, episode)
        changed = cost is not None and decision.kind in ("up", "down", "move")
        if budget is not None:
            settled = self.at_s - self.changed_at_s > STARTS_S
            for cause in _causes(episode, self.observations, settled=settled):
                budget = budget.excused(self.seen.since_s, self.seen.at_s, cause)
        return replace(
            self,
            plan=episode.running,
            episodes=episodes[-self.keep :],
            earlier=self._earlier(episodes[: -self.keep], decision.at_s),
            seen=None,
            pauses_s=pauses_s,
            changed_at_s=decision.at_s if changed else self.changed_at_s,
            budget=budget,
        )

    def _earlier(self, left: Sequence[Episode], now_s: float) -> tuple[Episode, ...]:
        """Return `earlier` with the episodes that have *left* the last ones, if they count."""
        kept = list(self.earlier)
        for episode in left:
            apart_s = episode.decision.at_s - kept[-1].decision.at_s if kept else inf
            if episode.cost is not None or apart_s >= _APART_S:
                kept.append(episode)
        return tuple(e for e in kept if e.decision.at_s > now_s - _REMEMBERED_S)

    def outcomes(self, most: int | None = None) -> list[tuple[Expected, Observation]]:
        """Return predictions with the measurements that followed, where both are known.

        These are the last ones, at *most* as many. Turns in which a change paused operators, or
        a batch ended, are left out: the model does not include pauses.
        """
        return list(islice(self._outcomes(), most))[::-1]

    def _outcomes(self) -> Iterator[tuple[Expected, Observation]]:
        """Yield the latest outcome first."""
        after = self.seen
        for episode in reversed(self.episodes):
            expected = episode.decision.expected
            if (
                after is not None
                and expected is not None
                and after.usable
                and not batch_ended([episode.observation, after])
                # the plan of the prediction did run
                and episode.running == episode.decision.after
                and (episode.cost is None or episode.cost.pause_s == 0)
            ):
                yield expected, after
            after = episode.observation

    def prediction_error(self) -> PredictionError | None:
        """Return the prediction error of the target's statistic; None if there is none yet."""
        return PredictionError.over(
            [
                (expected.seconds, measured_s(after, expected.statistic))
                for expected, after in self.outcomes()
                if isfinite(expected.seconds)
            ]
        )

    def prediction_errors(self) -> dict[str, PredictionError]:
        """Return the prediction error of the sojourn at each operator."""
        errors = {}
        for name in self.topology.operator:
            pairs = [
                (expected.sojourns_s[name], sojourn_s)
                for expected, after in self.outcomes()
                if name in expected.sojourns_s
                and (sojourn_s := after.operators[name].sojourn_s) is not None
            ]
            if (error := PredictionError.over(pairs)) is not None:
                errors[name] = error
        return errors


def _causes(
    episode: Episode, observations: Sequence[Observation], *, settled: bool
) -> Iterator[str]:
    """Yield the causes of misses in a turn that a margin does not prevent.

    Processors that a change has just added may still start; it is *settled* once they should
    have.
    """
    seen = episode.observation
    if seen.warming:
        yield "the application was starting"
    if episode.cost is not None and episode.cost.pause_s > 0:
        yield "a change paused operators"
    if batch_ended(observations):
        yield "a batch ended"
    if settled and any(o.running < o.wanted for o in seen.operators.values()):
        yield "processors were not running"
    if episode.decision.wish.limited:
        yield episode.decision.wish.limited


def batch_ended(observations: Sequence[Observation]) -> bool:
    """Return whether a batch ended in the last of *observations*, and such ends are rare.

    Records wait while a batch ends, and more processors would not help. One end may extend over
    two looks. More looks with an end in a row mean short batches, whose cost is part of the
    latency.

    >>> quiet, end = (Observation(since_s=0, at_s=1, commits=n) for n in (0, 1))
    >>> batch_ended([quiet, end]), batch_ended([quiet, end, end]), batch_ended([end] * 3)
    (True, True, False)
    """
    row = takewhile(lambda seen: seen.commits > 0, reversed(observations))
    return 0 < len(list(row)) <= _END_OF_BATCH


def measured_s(observation: Observation, statistic: str) -> float:
    """Return the measured statistic of a target; NaN if no root completed."""
    if statistic == "mean":
        return observation.mean_s
    return observation.percentile_s(PERCENTILES[statistic])


def allocation_text(allocation: Mapping[str, int]) -> str:
    """Return the processors in the order of the topology.

    >>> allocation_text({"extract": 10, "match": 11, "aggregate": 1})
    '10:11:1'
    """
    return ":".join(map(str, allocation.values()))

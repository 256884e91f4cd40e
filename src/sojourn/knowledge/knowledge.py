"""The knowledge of the loop: observations, decisions with reasons, and their effects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import isfinite
from statistics import median
from typing import Literal

from sojourn.decide.plan import Expected, Plan
from sojourn.decide.target import Target
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.observation import Observation
from sojourn.measure.observed import measured
from sojourn.measure.steady import timed_longer
from sojourn.model.network import PERCENTILES
from sojourn.topology import Topology

__all__ = [
    "Decision",
    "Episode",
    "Kind",
    "Knowledge",
    "News",
    "NodeNeed",
    "PredictionError",
    "Wish",
    "allocation_text",
    "batch_ended",
    "measured_s",
]

Kind = Literal["hold", "up", "down", "move", "nodes"]

# Pauses change with the engine, caches and state, so only the last few are averaged.
_LAST_CHANGES = 5
# The end of a batch is in at most this many looks.
_END_OF_BATCH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a policy wants: an allocation, which may be the current one, and the reason.

    *goal* is the goal in words, *wanted* the allocation that the load needs for it, whether or
    not it is applied now. *offered* are the processors that the load keeps busy at each
    operator, and *noise* is the relative error of that by chance.
    """

    allocation: Mapping[str, int]
    reason: str
    expected: Expected | None = None
    goal: str = ""
    wanted: Mapping[str, int] | None = None
    offered: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> "Wish":
        """Return the wish that *plan* carries out."""
        return cls(allocation=plan.allocation, reason=plan.reason, expected=plan.expected)


_NONE = Wish(allocation={}, reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The new plan, the one it replaces, and the wish of the policy that it follows.

    An order by hand follows no policy: its wish is the plan itself.

    >>> before, after = Plan.here({"a": 2}), Plan.here({"a": 3}, reason="too slow")
    >>> decision = Decision(at_s=60, before=before, after=after)
    >>> decision.kind, decision.reason
    ('up', 'too slow')
    """

    at_s: float
    before: Plan
    after: Plan
    wish: Wish = _NONE

    def __post_init__(self) -> None:
        if self.wish is _NONE:
            object.__setattr__(self, "wish", Wish.of(self.after))

    @property
    def reason(self) -> str:
        """The reason for the decision."""
        return self.after.reason

    @property
    def expected(self) -> Expected | None:
        """The prediction for the new plan."""
        return self.after.expected

    @property
    def kind(self) -> Kind:
        """More processors, fewer, the same number elsewhere, only other nodes, or no change."""
        if self.before == self.after:
            return "hold"
        more = self.after.processors - self.before.processors
        if more:
            return "up" if more > 0 else "down"
        return (
            "nodes" if self.before == replace(self.after, nodes=self.before.nodes) else "move"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One turn of the loop: the observation, the decision and its cost.

    *cost* is None if nothing was changed: the decision was to hold, the loop only recommends,
    or the engine failed, and *failure* says why. *target* is the one at that time, if it may
    change while the loop runs.
    """

    observation: Observation
    decision: Decision
    cost: Cost | None = None
    failure: str = ""
    target: Target | None = None

    @classmethod
    def between_turns(
        cls, decision: Decision, cost: Cost | None = None, failure: str = ""
    ) -> "Episode":
        """Return what was done between two turns: nothing was observed for it."""
        nothing = Observation.unusable(
            decision.at_s, decision.at_s, "not an observation of the loop"
        )
        return cls(observation=nothing, decision=decision, cost=cost, failure=failure)

    @property
    def looked(self) -> bool:
        """Whether it is a turn, not a command by hand between two turns."""
        return self.observation.lasted_s > 0

    @property
    def done(self) -> str:
        """What was done: the kind of the decision, and whether it was only advised or failed.

        `note` is an order between two turns (pause, resume, another target), or a warning.
        """
        kind = self.decision.kind
        if kind == "hold" and not self.looked and not self.failure:
            return "note"
        if kind == "hold" or self.cost is not None:
            return kind
        return f"{kind} failed" if self.failure else f"{kind} advised"

    @property
    def running(self) -> Plan:
        """The plan after the turn."""
        return self.decision.before if self.cost is None else self.decision.after


class News:
    """Tells a change or a new wish from a wish that is repeated at each turn."""

    def __init__(self) -> None:
        self._wished: tuple[str, Plan] | None = None

    def __call__(self, episode: Episode) -> bool:
        """Tell whether the turn differs from the one before."""
        wish = episode.done, episode.decision.after
        again, self._wished = wish == self._wished, wish
        if episode.done == "note":
            return True
        if episode.done == "hold":
            return bool(episode.failure)  # the loop's own
        return not (again and episode.cost is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """The error of predictions, relative to the measured times.

    Relative to the sum of the measured times: single ones, of few records, may be close to 0.

    >>> PredictionError.over([(1.0, 2.0), (3.0, 2.0)])
    PredictionError(number=2, measured_s=4.0, mean=0.0, spread=0.5)
    """

    number: int
    measured_s: float
    """The sum of the measured times."""
    mean: float
    """The mean error; above 0 if predictions were too high."""
    spread: float
    """The mean absolute error."""

    @classmethod
    def over(cls, pairs: Sequence[tuple[float, float]]) -> "PredictionError | None":
        """Return the error of pairs (predicted, measured); None if there are none."""
        told = [(predicted, measured) for predicted, measured in pairs if measured > 0]
        if not told:
            return None
        total_s = sum(measured for _, measured in told)
        errors_s = [predicted - measured for predicted, measured in told]
        return cls(
            number=len(told),
            measured_s=total_s,
            mean=sum(errors_s) / total_s,
            spread=sum(map(abs, errors_s)) / total_s,
        )

    def __add__(self, other: "PredictionError") -> "PredictionError":
        total_s = self.measured_s + other.measured_s
        part = self.measured_s / total_s
        return PredictionError(
            number=self.number + other.number,
            measured_s=total_s,
            mean=part * self.mean + (1 - part) * other.mean,
            spread=part * self.spread + (1 - part) * other.spread,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNeed:
    """Since when there were too few or too many nodes; None if they are as needed."""

    more_since_s: float | None = None
    fewer_since_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """All that decisions are based on. `saw` and `did` add to it, and old turns are dropped.

    *topology* has measured values instead of the declared ones: the rates of the last
    observation, and service times averaged while they stayed the same. It is computed once per
    look; a policy that decides on an average of several looks calls `measured` on that.
    *midnight_s* is the time of day when the engine's clock was 0. *node_costs* are those that
    were observed last.
    """

    topology: Topology
    plan: Plan
    episodes: tuple[Episode, ...] = ()
    seen: Observation | None = None
    changed_at_s: float = 0.0
    midnight_s: float = 0.0
    node_need: NodeNeed = field(default_factory=NodeNeed)
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    keep: int = 240

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise BadInput(f"keep is {self.keep} turns; write 1 or more")

    @property
    def allocation(self) -> Mapping[str, int]:
        """The processors of each operator now."""
        return self.plan.allocation

    @property
    def at_s(self) -> float:
        """The end of the last observation."""
        return 0.0 if self.seen is None else self.seen.at_s

    @property
    def observations(self) -> tuple[Observation, ...]:
        """The observations, oldest first; the last one is to be decided on."""
        past = tuple(episode.observation for episode in self.episodes)
        return past if self.seen is None else (*past, self.seen)

    @property
    def pause_s(self) -> float:
        """How long a change pauses operators, from the last ones; 0 before the first."""
        pauses = [e.cost.pause_s for e in self.episodes if e.cost is not None]
        return median(pauses[-_LAST_CHANGES:]) if pauses else 0.0

    def saw(self, observation: Observation) -> "Knowledge":
        """Return the knowledge with one more observation, to be decided on."""
        topology, costs = self.topology, self.node_costs
        if observation.usable:
            costs = observation.node_costs
            history = (*self.observations, observation)
            topology = measured(topology, timed_longer(observation, history))
        return replace(self, topology=topology, seen=observation, node_costs=costs)

    def did(
        self, decision: Decision, cost: Cost | None = None, failure: str = ""
    ) -> "Knowledge":
        """Return the knowledge after *decision*, whether or not it was applied."""
        if self.seen is None:
            raise BadInput("there is no observation to decide on; call saw() first")
        episode = Episode(observation=self.seen, decision=decision, cost=cost, failure=failure)
        changed = cost is not None and decision.kind in ("up", "down", "move")
        return replace(
            self,
            plan=episode.running,
            episodes=(*self.episodes, episode)[-self.keep :],
            seen=None,
            changed_at_s=decision.at_s if changed else self.changed_at_s,
        )

    def outcomes(self) -> list[tuple[Expected, Observation]]:
        """Return predictions with the measurements that followed, if both are known.

        Turns in which a change paused operators, or a batch ended, are left out: the model does
        not include pauses.
        """
        later = [episode.observation for episode in self.episodes[1:]]
        if self.seen is not None:
            later.append(self.seen)
        return [
            (episode.decision.expected, after)
            for episode, after in zip(self.episodes, later, strict=False)
            if episode.decision.expected is not None
            and after.usable
            and not batch_ended([episode.observation, after])
            and episode.running == episode.decision.after
            and (episode.cost is None or episode.cost.pause_s == 0)
        ]

    def prediction_error(self) -> PredictionError | None:
        """Return the prediction error of the target's statistic; None without predictions."""
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


def batch_ended(observations: Sequence[Observation]) -> bool:
    """Tell whether a batch ended in the last of *observations*, and did not in each of them.

    Records wait while a batch ends, which more processors do not change. An end may be in two
    looks. If it is in more looks in a row, batches are so short that their cost is part of the
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

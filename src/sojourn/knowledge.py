"""What the loop remembers: what was seen, what was decided and why, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import isfinite
from statistics import median
from typing import Literal

from sojourn.decide.plan import Target
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.measure.observation import Observation
from sojourn.measure.observed import measured
from sojourn.measure.steady import timed_longer
from sojourn.model.network import PERCENTILES
from sojourn.topology import Topology

__all__ = [
    "Decision",
    "Episode",
    "Expected",
    "Kind",
    "Knowledge",
    "PredictionError",
    "allocation_text",
    "batch_ended",
    "measured_s",
]

Kind = Literal["hold", "up", "down", "move"]

# A change of the engine, a warmer cache, a larger state: the last few changes tell best.
_LAST_CHANGES = 5
# The end of a batch falls into so many looks at most.
_END_OF_BATCH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the model says of the time from a decision on: kept, to see whether it comes true.

    *seconds* is the *statistic* that the target speaks of at a load of *arrivals_per_s*,
    *sojourns_s* are the mean times a record waits and is served at each operator.
    """

    statistic: str
    seconds: float
    arrivals_per_s: float
    sojourns_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Processors from now on, and why. To change nothing is a decision too.

    *goal* is what was asked for, in words, *wanted* what the load calls for by itself to
    reach it, whether or not it is done now. *offered* are the processors that the load keeps
    busy at each operator, and *noise* by which part of itself that may be off by chance.

    >>> Decision(at_s=60, before={"a": 2}, after={"a": 3}, reason="too slow").kind
    'up'
    """

    at_s: float
    before: Mapping[str, int]
    after: Mapping[str, int]
    reason: str
    goal: str = ""
    wanted: Mapping[str, int] | None = None
    expected: Expected | None = None
    offered: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """More processors, fewer, the same number elsewhere, or no change."""
        if dict(self.before) == dict(self.after):
            return "hold"
        more = sum(self.after.values()) - sum(self.before.values())
        return "up" if more > 0 else "down" if more < 0 else "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One turn of the loop: what was seen, what was decided, and what that cost.

    *cost* is None where nothing was changed: the decision was to hold, the loop only
    recommends, or the engine refused, and then *failure* says why. *target* is the one that
    held then, where it may change while the loop runs.
    """

    observation: Observation
    decision: Decision
    cost: Cost | None = None
    failure: str = ""
    target: Target | None = None

    @property
    def looked(self) -> bool:
        """Whether it is a turn, and not something that was done by hand between two."""
        return self.observation.lasted_s > 0

    @property
    def running(self) -> Mapping[str, int]:
        """The allocation from then on."""
        return self.decision.before if self.cost is None else self.decision.after


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """How far predictions were off what then happened, in parts of it.

    In parts of all that was measured: single times, of few records, may be next to 0.

    >>> PredictionError.over([(1.0, 2.0), (3.0, 2.0)])
    PredictionError(number=2, measured_s=4.0, mean=0.0, spread=0.5)
    """

    number: int
    measured_s: float
    """All that was measured, added up."""
    mean: float
    """Above 0 where too much was predicted."""
    spread: float
    """The mean of the errors without their signs."""

    @classmethod
    def over(cls, pairs: Sequence[tuple[float, float]]) -> "PredictionError | None":
        """Return the errors of (predicted, measured); None of none."""
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
class Knowledge:
    """All that decisions are made on. It grows by `saw` and `did`, and forgets what is old.

    *topology* is as measured, in place of what was declared: rates of the last observation,
    service times over as long as they stayed the same. It is worked out once for every look;
    a policy that decides on an average of several looks calls `measured` on that.
    *midnight_s* is the time of the day when the engine's clock was 0.
    """

    topology: Topology
    allocation: Mapping[str, int]
    episodes: tuple[Episode, ...] = ()
    seen: Observation | None = None
    changed_at_s: float = 0.0
    midnight_s: float = 0.0
    keep: int = 240

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise BadInput(f"a history of {self.keep} turns; keep 1 or more")

    @property
    def at_s(self) -> float:
        """When what was seen last ended."""
        return 0.0 if self.seen is None else self.seen.at_s

    @property
    def observations(self) -> tuple[Observation, ...]:
        """What was seen, oldest first, with what is to be decided on at the end."""
        past = tuple(episode.observation for episode in self.episodes)
        return past if self.seen is None else (*past, self.seen)

    @property
    def pause_s(self) -> float:
        """How long a change stops operators, as the last ones showed; 0 before the first."""
        pauses = [e.cost.pause_s for e in self.episodes if e.cost is not None]
        return median(pauses[-_LAST_CHANGES:]) if pauses else 0.0

    def saw(self, observation: Observation) -> "Knowledge":
        """Return what is known with one more observation, yet to be decided on."""
        topology = self.topology
        if observation.usable:
            history = (*self.observations, observation)
            topology = measured(topology, timed_longer(observation, history))
        return replace(self, topology=topology, seen=observation)

    def did(
        self, decision: Decision, cost: Cost | None = None, failure: str = ""
    ) -> "Knowledge":
        """Return what is known after *decision* was carried out, or not."""
        if self.seen is None:
            raise BadInput("a decision on nothing; let the knowledge see an observation first")
        episode = Episode(observation=self.seen, decision=decision, cost=cost, failure=failure)
        changed = cost is not None and bool(cost.changed)
        return replace(
            self,
            allocation=dict(episode.running),
            episodes=(*self.episodes, episode)[-self.keep :],
            seen=None,
            changed_at_s=decision.at_s if changed else self.changed_at_s,
        )

    def outcomes(self) -> list[tuple[Expected, Observation]]:
        """Return what was expected beside what then happened, where both are known.

        Not where a change paused operators, or a batch ended: of pauses the model says
        nothing.
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
            and dict(episode.running) == dict(episode.decision.after)
            and (episode.cost is None or episode.cost.pause_s == 0)
        ]

    def prediction_error(self) -> PredictionError | None:
        """Return how far the target's statistic was off; None where nothing was expected."""
        return PredictionError.over(
            [
                (expected.seconds, measured_s(after, expected.statistic))
                for expected, after in self.outcomes()
                if isfinite(expected.seconds)
            ]
        )

    def prediction_errors(self) -> dict[str, PredictionError]:
        """Return how far the sojourn at each operator was off."""
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
    """Tell whether a batch ended in the last of *observations*, and that is not the rule.

    Records wait while one ends, which says nothing of processors. An end may fall into two
    looks. Where it is in more of them in a row, batches are so short that what they cost is
    a part of the latency.

    >>> quiet, end = (Observation(since_s=0, at_s=1, commits=n) for n in (0, 1))
    >>> batch_ended([quiet, end]), batch_ended([quiet, end, end]), batch_ended([end] * 3)
    (True, True, False)
    """
    row = takewhile(lambda seen: seen.commits > 0, reversed(observations))
    return 0 < len(list(row)) <= _END_OF_BATCH


def measured_s(observation: Observation, statistic: str) -> float:
    """Return what was measured of a target's statistic; NaN where no root completed."""
    if statistic == "mean":
        return observation.mean_s
    return observation.percentile_s(PERCENTILES[statistic])


def allocation_text(allocation: Mapping[str, int]) -> str:
    """Return the processors in the order of the topology.

    >>> allocation_text({"extract": 10, "match": 11, "aggregate": 1})
    '10:11:1'
    """
    return ":".join(map(str, allocation.values()))

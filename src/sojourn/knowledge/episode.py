"""The records of a turn of the loop: the wish of a policy, the decision, and the episode."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sojourn.decide.plan import Expected, Plan
from sojourn.decide.target import Target
from sojourn.engine import Cost
from sojourn.knowledge.error_budget import JudgedSlice
from sojourn.measure.observation import Observation

Kind = Literal["hold", "up", "down", "move", "nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The allocation a policy asks for, and why."""

    allocation: Mapping[str, int]
    """Processors by operator; may be the current allocation."""
    reason: str
    expected: Expected | None = None
    """The prediction for *allocation*."""
    goal: str = ""
    """The goal of the policy, in words."""
    wanted: Mapping[str, int] | None = None
    """The allocation that the load needs for the goal, applied now or not."""
    offered: Mapping[str, float] = field(default_factory=dict)
    """The offered load of each operator, in busy processors."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """The relative random error of *offered*."""
    limited: str = ""
    """Why there are fewer processors than the goal needs; empty if there are enough."""

    @classmethod
    def of(cls, plan: Plan) -> "Wish":
        return cls(allocation=plan.allocation, reason=plan.reason, expected=plan.expected)


_NONE = Wish(allocation={}, reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A new plan, the plan it replaces, and the wish it is based on.

    A manual order has no policy: its wish is derived from the plan.

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
        return self.after.reason

    @property
    def expected(self) -> Expected | None:
        return self.after.expected

    @property
    def kind(self) -> Kind:
        """The change from *before* to *after*.

        "up" and "down" change the total number of processors, "move" keeps the total, and
        "nodes" changes only the node plan.
        """
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
    """One turn of the loop: the observation, the decision and its cost."""

    observation: Observation
    decision: Decision
    cost: Cost | None = None
    """None if nothing changed: the loop held or only recommended, or the engine failed."""
    failure: str = ""
    """Why the engine failed to apply the decision."""
    target: Target | None = None
    """The target at that time, if it can change while the loop runs."""
    judged: tuple[JudgedSlice, ...] = ()
    """The slices that were judged in the turn."""

    @classmethod
    def between_turns(
        cls, decision: Decision, cost: Cost | None = None, failure: str = ""
    ) -> "Episode":
        """Return the episode of a change between two turns, which has no observation."""
        nothing = Observation.unusable(
            decision.at_s, decision.at_s, "not an observation of the loop"
        )
        return cls(observation=nothing, decision=decision, cost=cost, failure=failure)

    @property
    def looked(self) -> bool:
        """Whether it is a turn with an observation, not a change between two turns."""
        return self.observation.lasted_s > 0

    @property
    def done(self) -> str:
        """The outcome: the kind of the decision, and whether it was only advised or failed.

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
    """Filters out wishes that are only repeated at each turn."""

    def __init__(self) -> None:
        self._wished: tuple[str, Plan] | None = None

    def __call__(self, episode: Episode) -> bool:
        """Return whether the turn brings a change or a new wish."""
        wish = episode.done, episode.decision.after
        again, self._wished = wish == self._wished, wish
        if episode.done == "note":
            return True
        if episode.done == "hold":
            return bool(episode.failure)  # the loop's own
        return not (again and episode.cost is None)

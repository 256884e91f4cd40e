"""The loop: observe, decide, act, remember. The engine has the clock; decisions are pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from sojourn.act.policy.base import Policy
from sojourn.act.stall import unless_stalled
from sojourn.decide.place import PlacementRequest, Placer
from sojourn.decide.place.round_robin import place as round_robin
from sojourn.decide.plan import Node, Placement, Plan
from sojourn.engine import Cost, Engine
from sojourn.errors import ApplicationStopped, BadInput, BrokerAway, DiskFull, EngineError
from sojourn.knowledge import Decision, Episode, Knowledge, Wish
from sojourn.measure.aggregate import aggregate
from sojourn.measure.observation import Observation
from sojourn.topology import Topology
from sojourn.topology.check import shown

__all__ = ["ACTIVE", "PASSIVE", "Loop", "Mode", "Site", "planned", "step"]

# After this many failures in a row the engine counts as lost.
_MOST_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where processors may run: *placer* puts them on *nodes*."""

    placer: Placer = round_robin
    nodes: Sequence[Node] = ()


def step(
    knowledge: Knowledge, observation: Observation, policy: Policy, site: Site
) -> tuple[Knowledge, Decision]:
    """Return the knowledge with *observation*, and the decision: how many, and where."""
    seen = knowledge.saw(observation)
    wish = unless_stalled(policy(seen), seen)
    return seen, planned(seen, wish, site, seen.at_s)


def planned(knowledge: Knowledge, wish: Wish, site: Site, at_s: float) -> Decision:
    """Return the decision for *wish*: its processors, placed on the nodes of *site*."""
    before = knowledge.plan
    placement = _placement(knowledge, wish.allocation, site)
    same = dict(wish.allocation) == before.allocation
    moved = same and placement != before.placement
    after = Plan(
        placement=placement,
        admission=before.admission,
        reason=f"{wish.reason}; processors move to other nodes" if moved else wish.reason,
        expected=wish.expected,
    )
    return Decision(at_s=at_s, before=before, after=after, wish=wish)


def _placement(knowledge: Knowledge, allocation: Mapping[str, int], site: Site) -> Placement:
    request = PlacementRequest.of(
        knowledge.topology, allocation, site.nodes, knowledge.plan.placement
    )
    return site.placer(request)


@dataclass(frozen=True, slots=True)
class Mode:
    """Whether decisions are applied, and if not, *why*."""

    name: Literal["active", "passive", "paused", "failed", "ending"]
    why: str = ""

    @property
    def active(self) -> bool:
        """Whether decisions are applied."""
        return self.name == "active"


ACTIVE, PASSIVE = Mode("active"), Mode("passive", "it was started to recommend only")


class Loop:
    """Controls a running application by *policy*, with a turn every *every_s*.

    Unless *mode* is active it only recommends. `follow` changes policy and placer between
    turns. *placer* puts processors on the nodes of the engine.
    """

    def __init__(  # noqa: PLR0913 - a loop is told by name what differs from the usual
        self,
        engine: Engine,
        topology: Topology,
        policy: Policy,
        *,
        every_s: float,
        mode: Mode = ACTIVE,
        knowledge: Knowledge | None = None,
        placer: Placer = round_robin,
    ) -> None:
        if not 0 < every_s < inf:
            raise BadInput(f"every_s is {shown(every_s)}; write more than 0")
        self._engine, self._topology, self._every_s = engine, topology, every_s
        self._policy, self._mode, self._placer = policy, mode, placer
        self.knowledge = knowledge or Knowledge(topology=topology, plan=engine.plan)
        self._last_s: float | None = None
        self._failures = 0

    @property
    def mode(self) -> Mode:
        """Whether decisions are applied."""
        return self._mode

    def follow(self, policy: Policy, mode: Mode = ACTIVE, placer: Placer | None = None) -> None:
        """Decide by *policy* from the next turn on, and place by *placer*, if it is given."""
        self._policy, self._mode = policy, mode
        self._placer = placer or self._placer

    def run(self, until_s: float = inf) -> Iterator[Episode]:
        """Yield each turn, until the engine's clock reaches *until_s*.

        Raise `EngineError` if the engine fails many times in a row.
        """
        while self.continues(until_s):
            yield self.turn()

    def continues(self, until_s: float = inf) -> bool:
        """Tell whether there is time for another turn before *until_s*."""
        # not `until_s` itself: a very short last turn would measure nothing
        return self._engine.now_s < until_s - 0.5 * self._every_s

    def turn(self) -> Episode:
        """Observe, decide, act, and return the episode."""
        return self.decide(self.look())

    def decide(self, observation: Observation) -> Episode:
        """Decide on the last observation, act, and return the episode."""
        # nodes that came or went meanwhile have changed where processors are
        self.set_from_outside(self._engine.plan)
        known, decision = step(self.knowledge, observation, self._policy, self._site)
        cost, failure = self._act(decision)
        self.knowledge = known.did(decision, cost, failure)
        return self.knowledge.episodes[-1]

    def set_processors(self, allocation: Mapping[str, int], reason: str) -> Episode:
        """Carry out an order by hand; return what was done between two turns.

        Raise `EngineError` if the engine refuses it.
        """
        self.set_from_outside(self._engine.plan)
        wish = Wish(allocation=allocation, reason=reason)
        decision = planned(self.knowledge, wish, self._site, self._engine.now_s)
        cost = self._engine.apply(decision.after)
        self.set_from_outside(decision.after)
        return Episode.between_turns(decision, cost)

    @property
    def _site(self) -> Site:
        return Site(placer=self._placer, nodes=self._engine.nodes)

    def set_from_outside(self, plan: Plan) -> None:
        """Take over a plan that was applied by hand: it counts as a change."""
        if plan != self.knowledge.plan:
            self.knowledge = replace(self.knowledge, plan=plan, changed_at_s=self._engine.now_s)

    def start_over(self) -> None:
        """Continue with the running plan after a turn that failed half way."""
        self.knowledge = replace(self.knowledge, plan=self._engine.plan, seen=None)
        self._last_s, self._failures = None, 0

    def look(self) -> Observation:
        """Wait for the next turn, and return its observation.

        Raise `ApplicationStopped` if the application stopped, and `EngineError` if the engine
        fails many times in a row.
        """
        since_s = self._engine.now_s
        until_s = since_s + self._every_s
        try:
            pull = self._engine.observe(until_s)
        except ApplicationStopped:
            raise
        except (BrokerAway, DiskFull) as error:  # the engine limits how long this may last
            return Observation.unusable(since_s, until_s, str(error))
        except EngineError as error:
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                raise
            return Observation.unusable(since_s, until_s, f"the engine did not answer: {error}")
        self._failures = 0
        observation = aggregate(
            pull, self._topology, every_s=self._every_s, last_s=self._last_s
        )
        self._last_s = pull.at_s
        # The loop uses the time of the engine. The clocks of reports may jump, so only the
        # length of their interval is used.
        lasted_s = observation.lasted_s if observation.usable else self._every_s
        return replace(observation, since_s=until_s - lasted_s, at_s=until_s)

    def _act(self, decision: Decision) -> tuple[Cost | None, str]:
        if decision.kind == "hold" or not self._mode.active:
            return None, ""
        try:
            return self._engine.apply(decision.after), ""
        except EngineError as error:
            # The next turn wants the same, and tries again.
            return None, str(error)

"""The loop: observe, decide, act, remember.

`step` and `planned` are the pure decisions; `Loop` applies them to an engine, by whose clock it
runs.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from sojourn.act.node_scaling import NodeBounds, node_plan
from sojourn.act.policy.base import Policy
from sojourn.act.stall import unless_stalled
from sojourn.decide.objective import Objective
from sojourn.decide.place import PlacementRequest, Placer
from sojourn.decide.place.round_robin import place as round_robin
from sojourn.decide.plan import HERE, Node, Placement, Plan, here
from sojourn.engine import Cost, Engine, HasNodes, node_needs
from sojourn.errors import ApplicationStopped, BadInput, BrokerAway, DiskFull, EngineError
from sojourn.knowledge import Decision, Episode, Knowledge, Wish
from sojourn.measure.aggregate import aggregate
from sojourn.measure.births import Births
from sojourn.measure.observation import Observation
from sojourn.measure.report import Pull
from sojourn.text import shown
from sojourn.topology import Topology

# After this many failures in a row the engine counts as lost.
_MOST_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where processors may run."""

    nodes: Sequence[Node]
    """The nodes available now, including those that are being given back."""
    placer: Placer = round_robin
    bounds: NodeBounds = field(default_factory=NodeBounds)
    """Limits on the number of nodes, and of processors on each."""
    unplaced: Collection[str] = ()
    """Operators that do not run on nodes of the application."""
    news: str = ""
    """Nodes that joined or were lost since the last decision, in words."""


def step(
    knowledge: Knowledge,
    observation: Observation,
    policy: Policy,
    site: Site,
    *,
    active: bool = True,
) -> tuple[Knowledge, Decision]:
    """Return the knowledge with *observation*, and the decision on processors and nodes.

    Unless the loop is *active*, the policy only recommends processors. Nodes are then still
    scaled for the processors that run: if they have to change, that is the decision returned.
    """
    seen = knowledge.saw(observation)
    wish = unless_stalled(policy(seen), seen)
    known, decision = planned(seen, wish, site, seen.at_s)
    if active or dict(wish.allocation) == seen.plan.allocation:
        return known, decision
    # Passive: plan again for the current allocation, which may still need other nodes.
    reason = f"only recommended: {wish.reason}"
    as_now = replace(wish, allocation=seen.allocation, reason=reason, expected=None)
    known, kept = planned(seen, as_now, site, seen.at_s)
    return known, decision if kept.kind == "hold" else kept


def planned(
    knowledge: Knowledge, wish: Wish, site: Site, at_s: float
) -> tuple[Knowledge, Decision]:
    """Return the decision that fulfils *wish*: the nodes it needs, and where processors run."""
    before, allocation = knowledge.plan, dict(wish.allocation)
    placed = {name: k for name, k in allocation.items() if name not in site.unplaced}
    nodes, need = node_plan(knowledge, sum(placed.values()), site.nodes, site.bounds, at_s)
    staying = site.nodes if nodes is None else nodes.staying(site.nodes)
    placement = _placement(knowledge, allocation, placed, site, staying)
    moved = allocation == before.allocation and placement != before.placement
    reasons = (
        wish.reason,
        site.news,
        nodes.reason if nodes is not None and nodes != before.nodes else "",
        _moves(before, placement) if moved else "",
    )
    after = Plan(
        placement=placement,
        admission=before.admission,
        nodes=nodes,
        reason="; ".join(filter(None, reasons)),
        expected=wish.expected,
    )
    decision = Decision(at_s=at_s, before=before, after=after, wish=wish)
    return replace(knowledge, node_need=need), decision


def _placement(
    knowledge: Knowledge,
    allocation: Mapping[str, int],
    placed: Mapping[str, int],
    site: Site,
    staying: Sequence[Node],
) -> Placement:
    """Return the placement; without nodes it is kept, or left open for a new allocation."""
    before = knowledge.plan
    if not (staying and placed):
        return before.placement if allocation == before.allocation else here(allocation)
    on = site.placer(PlacementRequest.of(knowledge.topology, placed, staying, before.placement))
    return {name: on.get(name, {HERE: k}) for name, k in allocation.items()}


def _moves(before: Plan, placement: Placement) -> str:
    """Return the new nodes of processors, in words."""
    was_open = all(HERE in on for on in before.placement.values())
    names = {name: None for on in placement.values() for name in on if name != HERE}
    return f"processors {'run on' if was_open else 'move to'} {', '.join(names)}"


def _births(pull: Pull, objective: Objective, at_s: float) -> tuple[Births, ...]:
    within_s = objective.target.seconds
    return tuple(pull.roots.times.in_slices(objective.slice_s, within_s, at_s))


@dataclass(frozen=True, slots=True)
class Mode:
    """Whether the loop applies the decisions of its policy."""

    name: Literal["active", "passive", "paused", "failed", "ending"]
    why: str = ""
    """Why decisions are not applied."""

    @property
    def active(self) -> bool:
        return self.name == "active"


ACTIVE, PASSIVE = Mode("active"), Mode("passive", "it was started to recommend only")


class Loop:
    """Controls a running application by *policy*, with a turn every *every_s*.

    Unless *mode* is active, the loop only recommends numbers of processors; it places them and
    scales nodes in every mode. `follow` changes policy and placer between turns. *placer* puts
    processors on the nodes of the engine, whose number *bounds* limits. With an *objective*
    time slices are judged, and policies know the error budget.
    """

    def __init__(  # noqa: PLR0913 - most are keywords with defaults
        self,
        engine: Engine,
        topology: Topology,
        policy: Policy,
        *,
        every_s: float,
        mode: Mode = ACTIVE,
        knowledge: Knowledge | None = None,
        placer: Placer = round_robin,
        bounds: NodeBounds | None = None,
        objective: Objective | None = None,
    ) -> None:
        if not 0 < every_s < inf:
            raise BadInput(f"every_s is {shown(every_s)}; write more than 0")
        self._engine, self._topology, self._every_s = engine, topology, every_s
        self._policy, self._mode, self._placer = policy, mode, placer
        self._bounds = bounds or NodeBounds()
        self._there = frozenset(node.name for node in engine.nodes)
        self.knowledge = knowledge or Knowledge(topology=topology, plan=engine.plan)
        self._keep(objective)
        self._last_s: float | None = None
        self._failures = 0

    @property
    def mode(self) -> Mode:
        return self._mode

    def follow(
        self,
        policy: Policy,
        mode: Mode = ACTIVE,
        placer: Placer | None = None,
        objective: Objective | None = None,
    ) -> None:
        """Use *policy* and *mode* from the next turn on; *placer* and *objective* if given."""
        self._policy, self._mode = policy, mode
        self._placer = placer or self._placer
        self._keep(objective)

    def _keep(self, objective: Objective | None) -> None:
        budget = self.knowledge.budget
        if objective is not None and (budget is None or budget.objective != objective):
            self.knowledge = self.knowledge.keeping(objective)

    def run(self, until_s: float = inf) -> Iterator[Episode]:
        """Yield each turn, and changes between turns, until the clock reaches *until_s*.

        Raise `EngineError` if the engine fails many times in a row.
        """
        between: deque[Episode] = deque()
        if isinstance(self._engine, HasNodes):
            self._engine.on_nodes_changed(lambda: between.extend(self.follow_nodes()))
        while self.continues(until_s):
            turn = self.turn()
            while between:
                yield between.popleft()
            yield turn

    def continues(self, until_s: float = inf) -> bool:
        """Return whether there is time for another turn before *until_s*."""
        # not `until_s` itself: a very short last turn would measure nothing
        return self._engine.now_s < until_s - 0.5 * self._every_s

    def turn(self) -> Episode:
        return self.decide(self.look())

    def decide(self, observation: Observation) -> Episode:
        # nodes that joined or left meanwhile have changed the placement
        self.set_from_outside(self._engine.plan)
        known, decision = step(
            self.knowledge,
            observation,
            self._policy,
            self._site(),
            active=self._mode.active,
        )
        cost, failure = self._act(decision)
        self.knowledge = known.did(decision, cost, failure)
        return self.knowledge.episodes[-1]

    def set_processors(self, allocation: Mapping[str, int], reason: str) -> Episode:
        """Apply a manual order between two turns; return its episode.

        Raise `EngineError` if the engine refuses it.
        """
        self.set_from_outside(self._engine.plan)
        wish = Wish(allocation=allocation, reason=reason)
        known, decision = planned(self.knowledge, wish, self._site(), self._engine.now_s)
        cost = self._engine.apply(decision.after)
        self.knowledge = known
        self.set_from_outside(decision.after)
        return Episode.between_turns(decision, cost)

    def follow_nodes(self) -> tuple[Episode, ...]:
        """Place processors anew after nodes have joined or left, without an observation.

        Return the episode, unless the plan stays the same.
        """
        self.set_from_outside(self._engine.plan)
        same = Wish(allocation=self.knowledge.allocation, reason="")
        self.knowledge, decision = planned(
            self.knowledge, same, self._site(), self._engine.now_s
        )
        if decision.kind == "hold":
            return ()
        cost, failure = self._act(decision)
        if cost is not None:
            self.set_from_outside(decision.after)
        return (Episode.between_turns(decision, cost, failure),)

    def _site(self) -> Site:
        nodes, needs = self._engine.nodes, node_needs(self._engine)
        there = frozenset(node.name for node in nodes)
        joined, gone = there - self._there, self._there - there
        left = () if (plan := self.knowledge.plan.nodes) is None else plan.given_back
        self._there = there
        return Site(
            nodes=nodes,
            placer=self._placer,
            bounds=self._bounds.at_least(needs.least),
            unplaced=needs.unplaced,
            news="; ".join(
                [f"{name} joined" for name in sorted(joined)]
                + [f"{name} was lost" for name in sorted(gone.difference(left))]
            ),
        )

    def set_from_outside(self, plan: Plan) -> None:
        """Adopt a plan that was applied between turns.

        If processors changed or moved, it counts as a change; a new node plan alone does not.
        """
        before = self.knowledge.plan
        if replace(plan, nodes=before.nodes) != before:
            self.knowledge = replace(self.knowledge, changed_at_s=self._engine.now_s)
        self.knowledge = replace(self.knowledge, plan=plan)

    def start_over(self) -> None:
        """Resume with the running plan after a turn that failed midway."""
        self.knowledge = replace(self.knowledge, plan=self._engine.plan, seen=None)
        self._last_s, self._failures = None, 0

    def look(self) -> Observation:
        """Wait for the next turn; return its observation.

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
        # The loop goes by the engine's clock. The clocks of reports may jump, so only the
        # length of their interval is used.
        lasted_s = observation.lasted_s if observation.usable else self._every_s
        budget = self.knowledge.budget
        return replace(
            observation,
            since_s=until_s - lasted_s,
            at_s=until_s,
            births=_births(pull, budget.objective, until_s) if budget else (),
            per_node=0 if self._bounds.most is None else self._bounds.processors,
            most_nodes=self._bounds.most or 0,
        )

    def _act(self, decision: Decision) -> tuple[Cost | None, str]:
        rescales = decision.after.allocation != decision.before.allocation
        if decision.kind == "hold" or (rescales and not self._mode.active):
            return None, ""
        try:
            return self._engine.apply(decision.after), ""
        except EngineError as error:
            # not raised: the next turn decides the same, and retries
            return None, str(error)

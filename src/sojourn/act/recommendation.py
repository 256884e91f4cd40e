"""Parts that policies share: measured demand, wishes to hold or change, past recommendations.

The recommendation of a policy is the `wanted` of its wish, whether it is carried out or not.
The loop keeps decisions, so a policy without state can look up its earlier recommendations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import ceil

from sojourn.decide.target import MOST_PROCESSORS
from sojourn.knowledge import Decision, Knowledge, Wish, allocation_text
from sojourn.measure.observation import Observation
from sojourn.measure.observed import measured
from sojourn.model.cores import slowed
from sojourn.topology import Topology
from sojourn.topology.traffic import Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Records per second that operators should serve, and the service time of one."""

    per_s: Mapping[str, float]
    service_s: Mapping[str, float]
    gains: Gains

    @property
    def processors(self) -> dict[str, float]:
        """The processors that this demand keeps busy, as fractions."""
        return {name: per_s * self.service_s[name] for name, per_s in self.per_s.items()}


def demand(topology: Topology, seen: Observation) -> Demand:
    """Return the demand that the observed arrivals from outside cause at all operators.

    As published, these policies use only service times of the current observation. Rates are
    the solution of the traffic equations: loops are covered, and operators downstream of one
    that cannot keep up do not look idle.
    """
    topology = measured(topology, seen)
    running = {name: operator.running for name, operator in seen.operators.items()}
    # service times include the current sharing of cores, which these policies do not model
    shared = slowed(topology, running)
    return Demand(
        per_s=topology.rates,
        service_s={name: load.service_s for name, load in shared.loads.items()},
        gains=topology.gains,
    )


def whole(processors: float) -> int:
    """Return *processors* rounded up, limited to the maximum of a plan.

    >>> whole(2.5), whole(float("inf"))
    (3, 10000000)
    """
    return ceil(min(processors, MOST_PROCESSORS))


def listed(values: Mapping[str, float]) -> str:
    """Return names and values as text.

    >>> listed({"extract": 6.5, "match": 7.15})
    'extract 6.5, match 7.15'
    """
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())


def held(knowledge: Knowledge) -> Wish:
    """Return the wish to hold while measurements are unusable or the application warms up."""
    seen = knowledge.seen
    reason = "no observation yet" if seen is None else seen.reason
    reason = f"measurements are not usable: {reason}"
    if seen is not None and seen.usable and seen.warming:
        reason = (
            "the application has just started; its service times are not yet representative"
        )
    return Wish(allocation=knowledge.allocation, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """The current recommendation of a policy, and the wishes that can follow from it."""

    knowledge: Knowledge
    wanted: Mapping[str, int]
    """The recommended allocation, within the bounds of operators."""
    offered: Mapping[str, float]
    """Processors of each operator that the load keeps busy."""
    most: int | None
    """Limit of all processors; it applies to changes, not to recommendations."""

    def hold(self, reason: str) -> Wish:
        return self._wish(self.knowledge.allocation, reason)

    def change(self, after: Mapping[str, int], reason: str) -> Wish:
        """Return the wish for *after*, limited to *most*; the reason names the allocation."""
        topology = self.knowledge.topology
        within = bounded(topology, after, self.most)
        reason = f"{reason}: {allocation_text(within)}"
        if within != bounded(topology, after):
            reason = f"{reason}, limited to {self.most} processors"
        return self._wish(within, reason)

    def _wish(self, after: Mapping[str, int], reason: str) -> Wish:
        return Wish(allocation=after, reason=reason, wanted=self.wanted, offered=self.offered)


def recommended(knowledge: Knowledge, since_s: float) -> list[Decision]:
    """Return the decisions since *since_s* that have a recommendation, newest first."""
    return [
        episode.decision
        for episode in reversed(knowledge.episodes)
        if episode.decision.wish.wanted is not None and episode.decision.at_s >= since_s
    ]


def ration(topology: Topology, needs: Mapping[str, float], processors: int) -> dict[str, int]:
    """Return *processors* distributed to maximise the smallest ratio of processors to need.

    *needs* are fractions of processors. The slowest operator limits the application, so each
    processor goes to the operator with the smallest ratio. Bounds of operators are kept, except
    that each operator starts from 1 if there are too few for all `min_processors`.

    >>> from sojourn.topology import Arrival, Operator
    >>> two = Topology(
    ...     name="two",
    ...     arrivals=(Arrival(name="in", per_s=10, into="a"),),
    ...     operators=(
    ...         Operator(name="a", service_s=0.6, emits={"b": 1}),
    ...         Operator(name="b", service_s=0.3),
    ...     ),
    ... )
    >>> ration(two, {"a": 6.0, "b": 3.0}, 6)
    {'a': 4, 'b': 2}
    """
    given = {operator.name: operator.min_processors for operator in topology.operators}
    if sum(given.values()) > processors:
        given = dict.fromkeys(given, 1)
    heap = [(given[name] / max(needs[name], 1e-9), name) for name in given]
    heapify(heap)
    left = processors - sum(given.values())
    while left > 0 and heap:
        _, name = heap[0]
        most = topology.operator[name].most_processors
        if most is not None and given[name] >= most:
            heappop(heap)
            continue
        given[name] += 1
        left -= 1
        heapreplace(heap, (given[name] / max(needs[name], 1e-9), name))
    return given


def bounded(
    topology: Topology, allocation: Mapping[str, float], most: int | None = None
) -> dict[str, int]:
    """Return *allocation* within the bounds of each operator, and *most* in total."""
    within = {}
    for operator in topology.operators:
        wanted = max(int(allocation[operator.name]), operator.min_processors, 1)
        within[operator.name] = min(wanted, operator.most_processors or wanted)
    if most is None or sum(within.values()) <= most:
        return within
    return ration(topology, {name: float(number) for name, number in within.items()}, most)

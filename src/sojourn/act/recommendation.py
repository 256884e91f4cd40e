"""What policies share: measured demand, decisions to hold or change, earlier recommendations.

A policy recommends its decision's `wanted`, carried out or not. The loop remembers decisions,
so a policy without state of its own can look back on its recommendations.
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

__all__ = [
    "Demand",
    "Recommended",
    "bounded",
    "demand",
    "held",
    "listed",
    "ration",
    "recommended",
    "whole",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Records per second that operators should serve, and the service time of one."""

    per_s: Mapping[str, float]
    service_s: Mapping[str, float]
    gains: Gains

    @property
    def processors(self) -> dict[str, float]:
        """The processors that it keeps busy, as fractions."""
        return {name: per_s * self.service_s[name] for name, per_s in self.per_s.items()}


def demand(topology: Topology, seen: Observation) -> Demand:
    """Return what was *seen*, flowing from outside through all operators.

    As published, these policies use the service times of what they look at alone. Rates
    solve the traffic equations: behind an operator that cannot keep up, others do not look
    idle, and loops are covered.
    """
    topology = measured(topology, seen)
    running = {name: operator.running for name, operator in seen.operators.items()}
    # service times as cores are shared now: these policies know nothing of cores
    shared = slowed(topology, running)
    return Demand(
        per_s=topology.rates,
        service_s={name: load.service_s for name, load in shared.loads.items()},
        gains=topology.gains,
    )


def whole(processors: float) -> int:
    """Return *processors* rounded up, at most the most that a plan may have.

    >>> whole(2.5), whole(float("inf"))
    (3, 10000000)
    """
    return ceil(min(processors, MOST_PROCESSORS))


def listed(values: Mapping[str, float]) -> str:
    """Return names with their numbers.

    >>> listed({"extract": 6.5, "match": 7.15})
    'extract 6.5, match 7.15'
    """
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())


def held(knowledge: Knowledge) -> Wish:
    """Return the wish to hold, where nothing usable was seen or it has just started."""
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
    """What a policy recommends now, and the decisions that it can make of it.

    *wanted* is within the bounds of operators; *most* applies to what is done.
    """

    knowledge: Knowledge
    wanted: Mapping[str, int]
    offered: Mapping[str, float]
    most: int | None

    def hold(self, reason: str) -> Wish:
        """Return that nothing is changed."""
        return self._wish(self.knowledge.allocation, reason)

    def change(self, after: Mapping[str, int], reason: str) -> Wish:
        """Return the change to *after*, or the closest within *most*; the reason names it."""
        topology = self.knowledge.topology
        within = bounded(topology, after, self.most)
        reason = f"{reason}: {allocation_text(within)}"
        if within != bounded(topology, after):
            reason = f"{reason}, limited to {self.most} processors"
        return self._wish(within, reason)

    def _wish(self, after: Mapping[str, int], reason: str) -> Wish:
        return Wish(allocation=after, reason=reason, wanted=self.wanted, offered=self.offered)


def recommended(knowledge: Knowledge, since_s: float) -> list[Decision]:
    """Return the decisions from *since_s* on that recommended something, newest first."""
    return [
        episode.decision
        for episode in reversed(knowledge.episodes)
        if episode.decision.wish.wanted is not None and episode.decision.at_s >= since_s
    ]


def ration(topology: Topology, needs: Mapping[str, float], processors: int) -> dict[str, int]:
    """Return *processors* shared so that the smallest part of any need that is met is largest.

    *needs* are fractions of processors. The slowest operator limits the application, so each
    processor goes there. Bounds of operators are kept; where their `min_processors` are more
    than there are, each operator starts from 1.

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
    """Return *allocation* within the bounds of each operator, and of *most* in all."""
    within = {}
    for operator in topology.operators:
        wanted = max(int(allocation[operator.name]), operator.min_processors, 1)
        within[operator.name] = min(wanted, operator.most_processors or wanted)
    if most is None or sum(within.values()) <= most:
        return within
    return ration(topology, {name: float(number) for name, number in within.items()}, most)

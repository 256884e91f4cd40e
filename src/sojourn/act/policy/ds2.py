"""DS2: as many processors as the rates require (Kalavri et al., OSDI 2018).

The true rate of a processor is its rate if it never waited: one record per measured service
time. Rates from outside are propagated through the topology, and each operator gets the
processors that its target rate requires. DS2 considers neither latency nor backlog: a backlog
remains if the rates require no more processors.

The published controller visits operators in topological order, so it does not support loops.
This one solves the traffic equations, which gives the same result for topologies without loops.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated, ClassVar

from sojourn.act.policy.base import PolicyContext, Tuning
from sojourn.act.recommendation import Recommended, bounded, demand, held, listed, whole
from sojourn.errors import BadInput
from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.measure.observation import Observation


def policy(context: PolicyContext, /) -> "Ds2":
    return Ds2(most=context.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ds2:
    """Gives each operator the processors that its measured rate requires.

    One processor less at an operator is no reason for a change by itself.
    """

    tuning: ClassVar[Tuning] = Tuning("scaling_factor", few=0.0, many=2.0)

    most: int | None = None
    scaling_factor: Annotated[float, "extra processors, as a fraction"] = 0.0
    warm_up: Annotated[int, "observations ignored after a change"] = 1
    # as in the published code, the last of them counts
    activation: Annotated[int, "observations required before the next change"] = 1
    target_rate_ratio: Annotated[
        float, "ratio of arrivals to completions above which all grow if none has to"
    ] = inf

    def __post_init__(self) -> None:
        if not 0 <= self.scaling_factor < inf:
            raise BadInput(f"ds2: scaling_factor is {self.scaling_factor}; write 0 or more")
        if self.warm_up < 0:
            raise BadInput(f"ds2: warm_up is {self.warm_up} observations; write 0 or more")
        if self.activation < 1:
            raise BadInput(f"ds2: activation is {self.activation}; write 1 or more")
        if not self.target_rate_ratio >= 1:
            ratio = self.target_rate_ratio
            raise BadInput(f"ds2: target_rate_ratio is {ratio}; write 1 or more")

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        seen, before = knowledge.seen, dict(knowledge.allocation)
        if seen is None or not seen.usable:
            return held(knowledge)
        offered = demand(knowledge.topology, seen).processors
        needs = f"the measured rates need {listed(offered)} processors"
        optimal = self._bounded(
            knowledge, {n: (1 + self.scaling_factor) * need for n, need in offered.items()}
        )
        wanted = optimal
        if not _grows(before, optimal) and (ratio := _ratio(seen)) > self.target_rate_ratio:
            needs = f"{needs}, and arrivals are {ratio:.3g} times completions"
            wanted = self._bounded(knowledge, {n: ratio * k for n, k in optimal.items()})
        now = Recommended(knowledge=knowledge, wanted=wanted, offered=offered, most=self.most)
        if soon := self._too_soon(knowledge):
            return now.hold(f"{needs}, but {soon}")
        if not _grows(before, wanted) and not _shrinks(before, wanted):
            return now.hold(f"{needs}: keeping {allocation_text(before)}")
        return now.change(wanted, needs)

    def _bounded(self, knowledge: Knowledge, needs: Mapping[str, float]) -> dict[str, int]:
        return bounded(knowledge.topology, {name: whole(k) for name, k in needs.items()})

    def _too_soon(self, knowledge: Knowledge) -> str:
        used = [
            episode
            for episode in knowledge.episodes
            if episode.observation.usable and episode.decision.at_s > knowledge.changed_at_s
        ]
        # never wait for more episodes than the knowledge keeps
        wait = min(self.warm_up + self.activation - 1, knowledge.keep)
        if len(used) >= wait:
            return ""
        return (
            f"this is observation {len(used) + 1} since the last change, and the policy acts "
            f"from number {wait + 1} on"
        )


def _grows(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    return any(after[name] > k for name, k in before.items())


def _shrinks(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    return any(after[name] < k - 1 for name, k in before.items())


def _ratio(seen: Observation) -> float:
    """Return the ratio of arrivals to completions; 1 if nothing completes."""
    return seen.arrivals_per_s / seen.completed_per_s if seen.completed_per_s > 0 else 1.0

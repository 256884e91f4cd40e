"""A threshold on utilisation, per operator, as Kubernetes scales pods by their CPU.

The defaults are those of its horizontal pod autoscaler (HPA), whose users set the target
utilisation; guides recommend 0.5 to 0.8. Utilisation saturates at 1 however much arrives, so it
does not show how many processors are missing: such autoscalers approach the number in steps,
and do not see a backlog.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Annotated, ClassVar

from sojourn.act.policy.base import PolicyContext, Tuning
from sojourn.act.recommendation import Recommended, bounded, held, listed, recommended
from sojourn.errors import BadInput
from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.measure.observation import Moments, Observation

# The mean of this many samples has a standard error of a tenth, the default tolerance.
_ENOUGH_SAMPLES = 100


def policy(context: PolicyContext, /) -> "Threshold":
    return Threshold(most=context.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Keeps processors near a target utilisation."""

    tuning: ClassVar[Tuning] = Tuning("utilisation", few=1.0, many=0.2)

    most: int | None = None
    utilisation: Annotated[float, "target utilisation of processors"] = 0.7
    tolerance: Annotated[float, "relative deviation from it without a change"] = 0.1
    down_s: Annotated[float, "time over which the highest recommendation is kept"] = 300.0
    up_period_s: Annotated[float, "period in which scale-up is limited"] = 15.0
    up_times: Annotated[float, "maximum multiple of its processors in a period"] = 2.0
    up_by: Annotated[int, "maximum number of processors added in a period, if that is more"] = 4

    def __post_init__(self) -> None:
        if not 0 < self.utilisation <= 1:
            raise BadInput(
                f"threshold: utilisation is {self.utilisation}; it must be between 0 and 1"
            )
        for name in ("tolerance", "down_s", "up_period_s", "up_by"):
            if not 0 <= getattr(self, name) < inf:
                raise BadInput(f"threshold: {name} is {getattr(self, name)}; write 0 or more")
        if not 1 <= self.up_times < inf:
            raise BadInput(f"threshold: up_times is {self.up_times}; write 1 or more")

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        seen, before = knowledge.seen, dict(knowledge.allocation)
        if seen is None or not seen.usable:
            return held(knowledge)
        observations = knowledge.observations
        busy = {name: _busy(observations, name) for name in before}
        wanted = bounded(
            knowledge.topology,
            {name: self._wanted(k, busy[name]) for name, k in before.items()},
        )
        after = self._stabilised(knowledge, wanted)
        now = Recommended(knowledge=knowledge, wanted=wanted, offered={}, most=self.most)
        known = {name: part for name, part in busy.items() if part is not None}
        text = f"utilisation {listed(known) or 'unknown'}, target {self.utilisation:g}"
        if after != before:
            return now.change(after, text)
        if wanted == before:
            return now.hold(f"{text}: keeping {allocation_text(before)}")
        late = (
            f"scale-up is limited within {self.up_period_s:g} s"
            if any(wanted[name] > k for name, k in before.items())
            else f"the highest recommendation of the last {self.down_s:g} s is kept"
        )
        return now.hold(f"{text}: {allocation_text(wanted)}, but {late}")

    def _wanted(self, processors: int, busy: float | None) -> int:
        ratio = 1.0 if busy is None else busy / self.utilisation
        if abs(ratio - 1) <= self.tolerance:
            return processors
        return ceil(processors * ratio)

    def _stabilised(self, knowledge: Knowledge, wanted: Mapping[str, int]) -> dict[str, int]:
        lately, grown_from = self._lately(knowledge), self._grown_from(knowledge)
        after = {}
        for name, k in knowledge.allocation.items():
            most = max(ceil(self.up_times * grown_from[name]), grown_from[name] + self.up_by)
            kept = max([wanted[name], *(past.get(name, k) for past in lately)])
            after[name] = max(k, min(wanted[name], most)) if wanted[name] > k else min(k, kept)
        return after

    def _lately(self, knowledge: Knowledge) -> list[Mapping[str, int]]:
        """Return recent recommendations; the initial allocation counts as one."""
        since_s = knowledge.at_s - self.down_s
        lately = [past.wish.wanted or {} for past in recommended(knowledge, since_s)]
        all_remembered = len(knowledge.episodes) < knowledge.keep
        if all_remembered and knowledge.observations[0].since_s > since_s:
            past = knowledge.episodes
            begun = past[0].decision.before if past else knowledge.plan
            lately.append(begun.allocation)
        return lately

    def _grown_from(self, knowledge: Knowledge) -> Mapping[str, int]:
        """Return the allocation at the start of the period in which growth is limited."""
        since_s = knowledge.at_s - self.up_period_s
        for episode in knowledge.episodes:
            if episode.cost is not None and episode.decision.at_s > since_s:
                return episode.decision.before.allocation
        return knowledge.allocation


def _busy(observations: Sequence[Observation], name: str) -> float | None:
    """Return the utilisation of an operator's processors; None if it is not known.

    An operating system accounts for all CPU time, but Sojourn times only a sample of records.
    If the samples are few, older ones are included to reduce their noise.
    """
    now, timed = observations[-1].operators[name], Moments()
    if now.utilisation is not None and now.samples >= _ENOUGH_SAMPLES:
        return min(1.0, now.utilisation)
    for observation in reversed(observations):
        if timed.number >= _ENOUGH_SAMPLES:
            break
        if observation.usable:
            timed += observation.operators[name].service
    if timed.mean_s is not None and now.running > 0:
        return min(1.0, now.served_per_s * timed.mean_s / now.running)
    idle = now.served == 0 and now.arrivals_per_s == 0 and now.backlog == 0
    return 0.0 if idle else None

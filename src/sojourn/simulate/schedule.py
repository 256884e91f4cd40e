"""A schedule: the policy that knows a load in advance, to compare others with."""

from dataclasses import dataclass, field
from typing import ClassVar

from sojourn.act.policy.base import Tuning
from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.simulate.rehearsal import Stage

# A plan takes effect at the next look, and must last until the one after it.
_AHEAD = (0.0, 0.5, 1.0, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Plans for the highest rate of the next moments, without looking at any measurement."""

    tuning: ClassVar[Tuning] = Tuning("margin", few=-0.3, many=0.7)

    stage: Stage
    margin: float = 0.0
    """Load to plan for in addition, as a fraction."""
    _plans: dict[float, dict[str, int]] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        stage, now_s = self.stage, knowledge.at_s
        highest = max(stage.rates.at(now_s + part * stage.every_s) for part in _AHEAD)
        # to a hundredth, so that few plans are made
        per_s = round(highest * (1 + self.margin), 2)
        if per_s not in self._plans:
            self._plans[per_s] = dict(stage.plan(per_s).allocation)
        after = self._plans[per_s]
        return Wish(
            allocation=after, reason=f"scheduled for {per_s:g} per s: {allocation_text(after)}"
        )

"""No autoscaling: the initial allocation stays."""

from dataclasses import dataclass

from sojourn.act.policy.base import PolicyContext
from sojourn.knowledge import Knowledge, Wish


def policy(_context: PolicyContext, /) -> "Static":
    return Static()


@dataclass(frozen=True, slots=True)
class Static:
    """Never changes the allocation."""

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        seen = knowledge.observations[-1]
        unusable = "" if seen.usable else f"; measurements are not usable: {seen.reason}"
        return Wish(
            allocation=knowledge.allocation,
            reason=f"static: the allocation never changes{unusable}",
        )

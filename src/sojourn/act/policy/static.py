"""No autoscaling: the initial allocation stays."""

from dataclasses import dataclass

from sojourn.act.policy.base import PolicyContext
from sojourn.knowledge import Knowledge, Wish

__all__ = ["Static", "policy"]


def policy(_context: PolicyContext, /) -> "Static":
    """Return the policy; it has no options."""
    return Static()


@dataclass(frozen=True, slots=True)
class Static:
    """Never changes the allocation."""

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        """Return the wish to hold, with the reason if measurements are not usable."""
        seen = knowledge.observations[-1]
        unusable = "" if seen.usable else f"; measurements are not usable: {seen.reason}"
        return Wish(
            allocation=knowledge.allocation,
            reason=f"static: the allocation never changes{unusable}",
        )

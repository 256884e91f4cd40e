"""No autoscaling: what was started with stays."""

from dataclasses import dataclass

from sojourn.act.policy.base import PolicyContext
from sojourn.knowledge import Decision, Knowledge

__all__ = ["Static", "policy"]


def policy(_context: PolicyContext, /) -> "Static":
    """Return the policy."""
    return Static()


@dataclass(frozen=True, slots=True)
class Static:
    """Changes nothing, ever."""

    def __call__(self, knowledge: Knowledge, /) -> Decision:
        """Return that nothing is done."""
        same, seen = dict(knowledge.allocation), knowledge.observations[-1]
        unusable = "" if seen.usable else f"; what was measured cannot be used: {seen.reason}"
        return Decision(
            at_s=knowledge.at_s,
            before=same,
            after=same,
            reason=f"what was started with stays{unusable}",
        )

"""No autoscaling: what was started with stays."""

from dataclasses import dataclass

from sojourn.decide.plan import Target
from sojourn.knowledge import Decision, Knowledge

__all__ = ["Static", "policy"]


def policy(_target: Target, _most: int | None) -> "Static":
    """Return the policy."""
    return Static()


@dataclass(frozen=True, slots=True)
class Static:
    """Changes nothing, ever."""

    def __call__(self, knowledge: Knowledge, /) -> Decision:
        """Return that nothing is done."""
        same, seen = dict(knowledge.allocation), knowledge.observations[-1]
        unusable = "" if seen.usable else f"; measurements are not usable: {seen.reason}"
        return Decision(
            at_s=knowledge.at_s,
            before=same,
            after=same,
            reason=f"static: the allocation never changes{unusable}",
        )

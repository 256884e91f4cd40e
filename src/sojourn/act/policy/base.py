"""What a policy has to hold, and what it is made for.

A policy is a frozen dataclass in a file of its own, and `policy(context)` in that file makes
it. Its options are those of its fields that have a meaning (`sojourn.act.options`):

    utilisation: Annotated[float, "target utilisation of processors"] = 0.7
"""

from dataclasses import dataclass
from typing import Protocol

from sojourn.decide.target import Target
from sojourn.knowledge import Knowledge, Wish

__all__ = ["Policy", "PolicyContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """What a policy is made for; by it a policy may choose its defaults.

    *most* is how many processors there may be. *every_s* is the time from one observation to
    the next, where that is known, and *pauses* whether a change stops what it changes.
    """

    target: Target
    most: int | None = None
    every_s: float | None = None
    pauses: bool = True


class Policy(Protocol):
    """Decides, from what is known, how many processors each operator has from now on.

    - It is asked once for every observation, which is `knowledge.seen`, usable or not.
    - Its reason is never empty: to change nothing, which is to wish for
      `knowledge.allocation`, is explained like any other wish.
    - Every operator gets at least one processor, and its bounds are kept.
    - Where the observation is not usable it changes nothing, and its reason is that of the
      observation.
    - It is a function of what is known: it remembers nothing, and reads no clock.
    - It raises nothing, whatever was measured.
    """

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        """Return what there should be from now on."""

"""The Protocol of policies, and the context that they are created for.

A policy is a frozen dataclass in a file of its own, created by `policy(context)` in that file.
Its options are the fields that are annotated with a meaning (`sojourn.act.options`):

    utilisation: Annotated[float, "target utilisation of processors"] = 0.7
"""

from dataclasses import dataclass
from typing import Protocol

from sojourn.decide.target import Target
from sojourn.knowledge import Knowledge, Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """The setting in which a policy runs; a policy may derive its defaults from it."""

    target: Target
    most: int | None = None
    """The maximum number of processors."""
    every_s: float | None = None
    """The time between two observations, if known."""
    pauses: bool = True
    """Whether a change pauses the operators that it changes."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The option of a policy that trades processors for latency.

    A policy that has one names it in a class variable `tuning`.
    """

    option: str
    few: float
    """The value with the fewest processors."""
    many: float
    """The value with the most."""


class Policy(Protocol):
    """Decides how many processors each operator should have.

    - The loop calls it once for every observation, `knowledge.seen`, usable or not.
    - Its reason must not be empty. To hold is to wish for `knowledge.allocation`, and needs a
      reason like any other wish.
    - Every operator must get at least one processor, within its bounds.
    - If the observation is not usable it must hold, and give the reason of the observation.
    - It is a pure function of the knowledge: it has no state, and reads no clock.
    - It must not raise, whatever was measured.
    """

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        """Return the wanted allocation, and the reason for it."""

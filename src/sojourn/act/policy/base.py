"""What a policy has to hold."""

from typing import Protocol

from sojourn.knowledge import Knowledge, Wish

__all__ = ["Policy"]


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
        ...

"""How hard the fewest processors are searched for."""

from dataclasses import dataclass

from sojourn.decide.target import MOST_PROCESSORS

__all__ = ["QUICK", "THOROUGH", "Effort"]

# Where one processor keeps up, four may well not be enough for a strict target.
_ADDED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The number of operators that a search for a percentile looks at, and where it ends.

    Processors are handed out one by one. No more than *times* those that keep up (and a
    thousand) are tried; without *times*, as many as there can be.

    >>> Effort(looks=200, times=4).most_processors(22)
    1088
    """

    looks: int
    times: int | None = None

    def most_processors(self, keeping_up: int) -> int:
        """Return how many processors are tried where *keeping_up* keep up."""
        if self.times is None:
            return MOST_PROCESSORS
        return min(_ADDED + self.times * keeping_up, MOST_PROCESSORS)


THOROUGH = Effort(looks=30_000)
"""Some three seconds' work for a percentile."""

QUICK = Effort(looks=200, times=4)
"""For a plan at every turn: the start of the search for a percentile is rarely a processor too
many, and most of the time goes into the proof of that."""

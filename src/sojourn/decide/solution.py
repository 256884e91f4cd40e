"""What `assign` and `minimise` answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.decide.target import Target
from sojourn.model.cores import Computing

__all__ = ["Solution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Processors per operator that solve `assign` or `minimise`, and why these.

    *least* is a number of processors below which the target is known to be out of reach:
    the solution's own number where it is proved the fewest. *computing* says by how much
    sharing cores lengthens service times, where these are known.
    """

    name: str
    model: str
    allocation: Mapping[str, int]
    mean_s: float
    reason: str
    least: int
    target: Target | None = None
    nodes: int | None = None
    computing: Computing | None = None

    @property
    def processors(self) -> int:
        """All processors."""
        return sum(self.allocation.values())

"""The load of a station."""

from dataclasses import dataclass
from math import floor

__all__ = ["StationLoad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StationLoad:
    """The arrivals at an operator, and the service time of a record on one processor.

    The scv (squared coefficient of variation) is the variance over the squared mean: 0 for
    constant gaps, 1 for a Poisson stream or an exponential time, more for bursts.

    >>> load = StationLoad(arrivals_per_s=8, service_s=0.5)
    >>> load.erlangs, load.min_processors
    (4.0, 5)
    """

    arrivals_per_s: float
    service_s: float
    arrival_scv: float = 1.0
    service_scv: float = 1.0

    @property
    def erlangs(self) -> float:
        """The mean number of busy processors, however many there are."""
        return self.arrivals_per_s * self.service_s

    @property
    def min_processors(self) -> int:
        """The fewest that keep up: more than the Erlangs, as a full station is not stable."""
        return floor(self.erlangs) + 1

"""The load of a station."""

from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True, kw_only=True)
class StationLoad:
    """The arrivals at an operator, and its service time.

    The scv (squared coefficient of variation) is the variance over the squared mean: 0 for
    constant gaps, 1 for a Poisson stream or an exponential time, more for bursts.

    >>> load = StationLoad(arrivals_per_s=8, service_s=0.5)
    >>> load.erlangs, load.min_processors
    (4.0, 5)
    """

    arrivals_per_s: float
    service_s: float
    """The mean service time of a record on one processor."""
    arrival_scv: float = 1.0
    """The scv of the gaps between arrivals."""
    service_scv: float = 1.0
    """The scv of the service time."""

    @property
    def erlangs(self) -> float:
        """The mean number of busy processors, whatever their total number."""
        return self.arrivals_per_s * self.service_s

    @property
    def min_processors(self) -> int:
        """The fewest processors that keep up: more than the Erlangs, so that it is stable."""
        return floor(self.erlangs) + 1

"""Holt's linear trend: double exponential smoothing as a forecast of load (Holt 1957)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.errors import BadInput


@dataclass(frozen=True, slots=True)
class Holt:
    """A forecast from a smoothed level and a smoothed trend.

    >>> rising = [(0.0, 10.0), (10.0, 12.0), (20.0, 14.0), (30.0, 16.0)]
    >>> Holt()(rising, 40.0)
    18.0
    """

    level: float = 0.5
    """Weight of a new value in the level."""
    trend: float = 0.2
    """Weight of a new slope in the trend."""

    def __post_init__(self) -> None:
        if not (0 < self.level <= 1 and 0 <= self.trend <= 1):
            raise BadInput(
                f"forecast: level is {self.level} and trend is {self.trend}; both must be "
                "between 0 and 1"
            )

    def __call__(self, history: Sequence[tuple[float, float]], at_s: float) -> float:
        """Return the forecast for *at_s* from pairs of time and value, oldest first.

        It is never negative. The times need not be equidistant: the trend is per second.
        """
        if not history:
            raise BadInput("there is no history to forecast from; observe first")
        (last_s, level), *later = history
        slope = 0.0
        if later and later[0][0] > last_s:
            slope = (later[0][1] - level) / (later[0][0] - last_s)
        for time_s, value in later:
            gap_s = time_s - last_s
            if gap_s <= 0:
                continue
            before = level
            level = self.level * value + (1 - self.level) * (level + slope * gap_s)
            slope = self.trend * (level - before) / gap_s + (1 - self.trend) * slope
            last_s = time_s
        return max(0.0, level + slope * (at_s - last_s))

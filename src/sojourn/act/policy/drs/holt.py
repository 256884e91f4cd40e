"""Holt's linear trend: where a load is going (Holt 1957)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.errors import BadInput

__all__ = ["Holt"]


@dataclass(frozen=True, slots=True)
class Holt:
    """A level and a trend, both smoothed: what is new counts *level* and *trend* of it.

    >>> rising = [(0.0, 10.0), (10.0, 12.0), (20.0, 14.0), (30.0, 16.0)]
    >>> Holt()(rising, 40.0)
    18.0
    """

    level: float = 0.5
    trend: float = 0.2

    def __post_init__(self) -> None:
        if not (0 < self.level <= 1 and 0 <= self.trend <= 1):
            raise BadInput(
                f"forecast: level is {self.level} and trend is {self.trend}; both must be "
                "between 0 and 1"
            )

    def __call__(self, history: Sequence[tuple[float, float]], at_s: float) -> float:
        """Return the value expected at *at_s*, from (time, value), oldest first; never below 0.

        The times may be apart by more or less: the trend is kept per second.
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

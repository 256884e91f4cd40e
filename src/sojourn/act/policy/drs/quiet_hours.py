"""Hours of the day in which nothing is changed."""

from dataclasses import dataclass

from sojourn.errors import BadInput

__all__ = ["QuietHours"]

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From one time of the day until another, in seconds after midnight; over midnight too.

    >>> night = QuietHours(22 * 3600, 6 * 3600)
    >>> night.cover(23 * 3600), night.cover(3600), night.cover(12 * 3600)
    (True, True, False)
    >>> print(night)
    22:00-06:00
    """

    since_s: float
    until_s: float

    def __post_init__(self) -> None:
        for time_s in (self.since_s, self.until_s):
            if not 0 <= time_s <= _DAY_S:
                raise BadInput(
                    f"{time_s} s after midnight is not a time of day; write 0 to 86400"
                )
        if self.since_s == self.until_s:
            raise BadInput(
                f"quiet hours begin and end at {self.since_s} s; write two different times"
            )

    def cover(self, time_s: float) -> bool:
        """Tell whether a time, in seconds after some midnight, is quiet."""
        of_day_s = time_s % _DAY_S
        if self.since_s < self.until_s:
            return self.since_s <= of_day_s < self.until_s
        return of_day_s >= self.since_s or of_day_s < self.until_s

    def __str__(self) -> str:
        return "-".join(
            f"{int(time_s) // 3600:02}:{int(time_s) % 3600 // 60:02}"
            for time_s in (self.since_s, self.until_s)
        )

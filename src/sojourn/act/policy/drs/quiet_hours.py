"""Times of day without changes."""

import re
from dataclasses import dataclass

from sojourn.errors import BadInput
from sojourn.text import shown

_DAY_S = 86_400
_TIME = re.compile(r"(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """An interval between two times of day, in seconds after midnight; it may span midnight.

    >>> night = QuietHours.read("22:00-06:00")
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

    @classmethod
    def read(cls, text: str) -> "QuietHours":
        """Parse hours such as `22:00-06:00`."""
        since, dash, until = text.partition("-")
        if not dash:
            raise BadInput(f"{shown(text)} is not FROM-UNTIL; write 08:00-18:00")
        return cls(read_time_of_day_s(since), read_time_of_day_s(until))

    def cover(self, time_s: float) -> bool:
        """Return whether a time, in seconds since any midnight, is quiet."""
        of_day_s = time_s % _DAY_S
        if self.since_s < self.until_s:
            return self.since_s <= of_day_s < self.until_s
        return of_day_s >= self.since_s or of_day_s < self.until_s

    def __str__(self) -> str:
        return "-".join(
            f"{int(time_s) // 3600:02}:{int(time_s) % 3600 // 60:02}"
            for time_s in (self.since_s, self.until_s)
        )


def read_time_of_day_s(text: str) -> float:
    """Parse a time of day such as `08:30`, in seconds after midnight.

    >>> read_time_of_day_s("08:30")
    30600.0
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[2]) > 59 or int(match[1]) * 60 + int(match[2]) > 24 * 60:
        raise BadInput(f"{shown(text)} is not a time of day; write 08:30")
    return 3600.0 * int(match[1]) + 60.0 * int(match[2])

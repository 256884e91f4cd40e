"""Times of day."""

import re

from sojourn.act.policy.drs.quiet_hours import QuietHours
from sojourn.errors import BadInput
from sojourn.topology.check import shown

__all__ = ["read_quiet_hours", "read_time_of_day_s"]

_TIME = re.compile(r"(\d{1,2}):(\d{2})")


def read_quiet_hours(text: str) -> QuietHours:
    """Return the hours in `22:00-06:00`.

    >>> print(read_quiet_hours("22:00-06:00"))
    22:00-06:00
    """
    since, dash, until = text.partition("-")
    if not dash:
        raise BadInput(f"{shown(text)} is not FROM-UNTIL; write 08:00-18:00")
    return QuietHours(read_time_of_day_s(since), read_time_of_day_s(until))


def read_time_of_day_s(text: str) -> float:
    """Return the seconds after midnight of `08:30`.

    >>> read_time_of_day_s("08:30")
    30600.0
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[2]) > 59 or int(match[1]) * 60 + int(match[2]) > 24 * 60:
        raise BadInput(f"{shown(text)} is not a time of day; write 08:30")
    return 3600.0 * int(match[1]) + 60.0 * int(match[2])

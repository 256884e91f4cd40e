"""Parsing of durations with a unit, as users write them."""

import re
from math import inf

from sojourn.errors import BadInput, BadTarget
from sojourn.text import shown

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")


def read_duration_s(text: str) -> float:
    """Parse a duration such as `500ms`, `1.5s` or `2m`, in seconds; the unit is required.

    >>> read_duration_s("500ms"), read_duration_s("1.5 s"), read_duration_s("2m")
    (0.5, 1.5, 120.0)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS_S:
        unit = "has no unit" if match and not match[2] else "is not a time"
        raise BadTarget(f"{shown(text)} {unit}; write 500ms, 1.5s or 2m")
    return float(match[1]) * _UNITS_S[match[2]]


def read_positive_s(text: str, option: str) -> float:
    """Parse a duration for *option*, in seconds. Raise `BadInput` unless it is positive."""
    seconds = read_duration_s(text)
    if not 0 < seconds < inf:
        raise BadInput(f"{option} {text} is not positive; write more than 0")
    return seconds

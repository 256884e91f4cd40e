"""Timestamps in the logs of operators, to sort the lines of several logs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

__all__ = ["Clocks", "LogLine", "time_s"]

_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line and its time; -inf if its log has no time up to this line."""

    operator: str
    text: str
    at_s: float


class Clocks:
    """The last time in each log; a line without a time gets that of the line before."""

    def __init__(self) -> None:
        self._last_s: dict[str, float] = {}

    def merged(self, new: Mapping[str, Iterable[str]]) -> list[LogLine]:
        """Return the *new* lines of operators, sorted by time."""
        lines = [self._line(operator, text) for operator in new for text in new[operator]]
        return sorted(lines, key=lambda line: line.at_s)

    def _line(self, operator: str, text: str) -> LogLine:
        at_s = time_s(text)
        if at_s is None:
            at_s = self._last_s.get(operator, -inf)
        self._last_s[operator] = at_s
        return LogLine(operator, text, at_s)


def time_s(line: str) -> float | None:
    """Return the time at the beginning of *line*, in UTC unless it has a time zone.

    >>> time_s("1970-01-01T00:01:00.500Z hello"), time_s("hello")
    (60.5, None)
    """
    found = _STAMP.match(line)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found[0].replace(",", "."))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()

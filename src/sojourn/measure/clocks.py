"""Producers' clocks that are off: births are compared with when Kafka had the records.

A record is born when its producer says so. Kafka has it a moment later, which is seen here to
a part of a second, by a clock of ours. Where most records of a source are born long before or
after that, its producers' clocks are off, or they send late: neither is a wait that processors
could shorten, and the time is counted from when Kafka had them.
"""

from collections import Counter, deque
from statistics import median

__all__ = ["Clocks"]

Appended = tuple[float, float]
"""Between which two times Kafka got a record."""

# Producers keep records for a moment to send several at once; what lies beyond is no such wait.
_TOLERANCE_S = 0.25
# So many records of a source tell how far its clocks are off; of more, the last so many.
_LEAST, _KEPT = 30, 500
# The median is worked out anew after so many, as it is asked for with each record.
_ANEW = 10


class Clocks:
    """How far the clocks of each source's producers are behind.

    >>> clocks = Clocks()
    >>> for second in range(30):
    ...     clocks.told("orders", second - 1.8, (second - 0.1, second + 0.1))
    >>> clocks.behind_s("orders"), clocks.birth_s("orders", 48.2, (49.9, 50.1))
    (1.8, 50.0)
    >>> print(*clocks.texts())
    producers of orders have clocks about 2 s behind, or send late: times count from Kafka's
    """

    def __init__(self) -> None:
        self._lags: dict[str, deque[float]] = {}
        self._told: Counter[str] = Counter()
        self._behind_s: dict[str, float] = {}

    def told(self, source: str, birth_s: float, appended: Appended) -> None:
        """Take in one record of *source*."""
        lags = self._lags.setdefault(source, deque(maxlen=_KEPT))
        lags.append(sum(appended) / 2 - birth_s)
        self._told[source] += 1
        if len(lags) >= _LEAST and self._told[source] % _ANEW == 0:
            middle_s = median(lags)
            self._behind_s[source] = middle_s if abs(middle_s) > _TOLERANCE_S else 0.0

    def behind_s(self, source: str) -> float:
        """Return how far its clocks are behind, below 0 ahead; 0 where they may be right."""
        return self._behind_s.get(source, 0.0)

    def birth_s(self, source: str, birth_s: float, appended: Appended | None) -> float:
        """Return when a record was born: as it says, where clocks are right."""
        behind_s = self.behind_s(source)
        if behind_s == 0:
            return birth_s
        return birth_s + behind_s if appended is None else sum(appended) / 2

    def texts(self) -> tuple[str, ...]:
        """Return what is to be told of those that are off; small changes do not change it."""
        return tuple(
            f"producers of {source} have clocks {_off(behind_s)}: times count from Kafka's"
            for source, behind_s in self._behind_s.items()
            if behind_s
        )


def _off(behind_s: float) -> str:
    if behind_s < 0:
        return f"about {-behind_s:.1g} s ahead"
    return f"about {behind_s:.1g} s behind, or send late"

"""Producers with wrong clocks: the births of records are compared with their append times.

The birth of a record is the timestamp of its producer. Kafka appends it a moment later, which
is known here to a fraction of a second by the clock of this machine. If most records of a
source are born long before or after that, the clocks of its producers are wrong, or they send
late. Processors cannot shorten either, so the time is counted from the append.
"""

from collections import Counter, deque
from statistics import median

__all__ = ["ProducerClocks"]

Appended = tuple[float, float]
"""The earliest and the latest time at which Kafka may have appended a record."""

# Producers hold records for a moment to send batches; a longer delay has another cause.
_TOLERANCE_S = 0.25
# The records of a source that give the offset of its clocks: at least, and the last of them.
_LEAST, _KEPT = 30, 500
# The median is updated after this many records, as it is used for each record.
_ANEW = 10


class ProducerClocks:
    """How far the clocks of the producers of each source are behind.

    >>> clocks = ProducerClocks()
    >>> for second in range(30):
    ...     clocks.told("orders", second - 1.8, (second - 0.1, second + 0.1))
    >>> clocks.behind_s("orders"), clocks.birth_s("orders", 48.2, (49.9, 50.1))
    (1.8, 50.0)
    >>> print(*clocks.texts())
    clocks of producers of orders are about 2 s behind, or they send late; latency ...to Kafka
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
        """Return how far its clocks are behind, negative if ahead; 0 if they may be right."""
        return self._behind_s.get(source, 0.0)

    def birth_s(self, source: str, birth_s: float, appended: Appended | None) -> float:
        """Return when a record was born: its own timestamp, if clocks are right."""
        behind_s = self.behind_s(source)
        if behind_s == 0:
            return birth_s
        return birth_s + behind_s if appended is None else sum(appended) / 2

    def texts(self) -> tuple[str, ...]:
        """Return a notice for each source with wrong clocks; small changes do not alter it."""
        return tuple(
            f"clocks of producers of {source} are {_off(behind_s)}; latency is measured from "
            "the append to Kafka"
            for source, behind_s in self._behind_s.items()
            if behind_s
        )


def _off(behind_s: float) -> str:
    if behind_s < 0:
        return f"about {-behind_s:.1g} s ahead"
    return f"about {behind_s:.1g} s behind, or they send late"

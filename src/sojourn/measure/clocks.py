"""Wrong clocks of producers: the births of records are compared with their append times.

The birth of a record is the timestamp of its producer. Kafka appends it a moment later; the
clock of this machine gives that time to a fraction of a second. If most records of a source are
born long before or after it, the clocks of its producers are wrong, or they send late. More
processors help with neither, so latency is then measured from the append.
"""

from collections import Counter, deque
from statistics import median

Appended = tuple[float, float]
"""The earliest and the latest time at which Kafka may have appended a record."""

# Producers hold records for a moment to send batches; a longer delay has another cause.
_TOLERANCE_S = 0.25
# The fewest records for the offset of a source's clocks, and how many of the last are kept.
_LEAST, _KEPT = 30, 500
# The median is updated only after this many records, because it is expensive.
_ANEW = 10


class ProducerClocks:
    """The clock offset of the producers of each source.

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
        """Record the birth and the append time of one record of *source*."""
        lags = self._lags.setdefault(source, deque(maxlen=_KEPT))
        lags.append(sum(appended) / 2 - birth_s)
        self._told[source] += 1
        if len(lags) >= _LEAST and self._told[source] % _ANEW == 0:
            middle_s = median(lags)
            self._behind_s[source] = middle_s if abs(middle_s) > _TOLERANCE_S else 0.0

    def behind_s(self, source: str) -> float:
        """Return how far the clocks of *source* are behind; negative if ahead, 0 if right."""
        return self._behind_s.get(source, 0.0)

    def birth_s(self, source: str, birth_s: float, appended: Appended | None) -> float:
        """Return the corrected birth of a record; its own timestamp if clocks are right."""
        behind_s = self.behind_s(source)
        if behind_s == 0:
            return birth_s
        return birth_s + behind_s if appended is None else sum(appended) / 2

    def texts(self) -> tuple[str, ...]:
        """Return a notice for each source with wrong clocks, rounded so that it is stable."""
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

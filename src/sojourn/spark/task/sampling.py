"""Sampling of the roots to trace: one in N, where N is proportional to their rate."""

from dataclasses import dataclass

_SPAN_S = 1.0


@dataclass(slots=True)
class Sampling:
    """Traces about *per_s* roots per second, evenly: every Nth, where N changes rarely.

    The first root of each interval would be a biased sample: after a gap it waits less than the
    others.

    >>> sampling = Sampling(per_s=2.0)
    >>> [sampling.weight(0.1 * n) for n in range(10)]  # at first the rate is not known
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    >>> [sampling.weight(1.0 + 0.1 * n) for n in range(10)]
    [0, 0, 0, 0, 5, 0, 0, 0, 0, 5]
    """

    per_s: float
    _every: int = 1
    _skipped: int = 0
    _seen: int = 0
    _since_s: float | None = None

    def weight(self, now_s: float) -> int:
        """Return how many roots the next one stands for; 0 if it is not traced."""
        if self.per_s <= 0:
            return 0
        if self._since_s is None:
            self._since_s = now_s
        elif now_s - self._since_s >= _SPAN_S:
            rate_per_s = self._seen / (now_s - self._since_s)
            self._every = max(1, round(rate_per_s / self.per_s))
            self._since_s, self._seen = now_s, 0
        self._seen += 1
        self._skipped += 1
        if self._skipped < self._every:
            return 0
        self._skipped = 0
        return self._every

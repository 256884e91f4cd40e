"""Whether something that failed is started again, and when."""

from collections import deque
from dataclasses import dataclass, field

__all__ = ["Restarts"]

_FIRST_S, _LONGEST_S = 0.1, 10.0


@dataclass(slots=True)
class Restarts:
    """Starts again, later each time, until there were *most* failures within *within_s*.

    >>> restarts = Restarts(most=3)
    >>> [restarts.delay_s(at_s) for at_s in (0.0, 1.0, 2.0, 3.0)]
    [0.1, 0.2, 0.4, None]
    >>> restarts.delay_s(500.0), restarts.number
    (0.1, 5)
    """

    most: int = 8
    within_s: float = 120.0
    number: int = 0
    _failed_at_s: deque[float] = field(default_factory=deque)

    def delay_s(self, now_s: float) -> float | None:
        """Return how long to wait after a failure now; None if it has failed too often."""
        while self._failed_at_s and now_s - self._failed_at_s[0] > self.within_s:
            self._failed_at_s.popleft()
        self._failed_at_s.append(now_s)
        self.number += 1
        failures = len(self._failed_at_s)
        if failures > self.most:
            return None
        return float(min(_LONGEST_S, _FIRST_S * 2 ** (failures - 1)))

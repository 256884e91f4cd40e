"""Whether something that failed is started again, and when."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["NodeLosses", "Restarts"]

_FIRST_S, _LONGEST_S = 0.1, 10.0

# Spark gives up a silent executor after 30 s, hosts an agent after 10 s: a batch may fail
# before, and a query that is started again may be sent to the same executor.
_BEFORE_S, _AFTER_S = 45.0, 45.0


@dataclass(slots=True)
class Restarts:
    """Starts again, later each time, until there were *most* failures within *within_s*.

    >>> restarts = Restarts(most=3)
    >>> [restarts.delay_s(at_s) for at_s in (0.0, 1.0, 2.0, 3.0)]
    [0.1, 0.2, 0.4, None]
    >>> restarts.delay_s(500.0), restarts.number
    (0.1, 5)

    Nor does it if what it does failed *most_stuck* times at the same place, however long that
    took; a failure with progress before it counts anew.

    >>> restarts = Restarts(most_stuck=2)
    >>> [restarts.delay_s(200.0 * n, place) for n, place in enumerate([7, 7, 8, 8, 8])]
    [0.1, 0.1, 0.1, 0.1, None]

    Failures that turn out to be the fault of something else are forgiven.

    >>> restarts = Restarts(most=3)
    >>> [restarts.delay_s(at_s) for at_s in (0.0, 1.0, 2.0)]
    [0.1, 0.2, 0.4]
    >>> restarts.forgive(1.0)
    >>> restarts.delay_s(3.0)
    0.2
    """

    most: int = 8
    within_s: float = 120.0
    most_stuck: int = 5
    number: int = 0
    _failed_at_s: deque[float] = field(default_factory=deque)
    _excused_at_s: deque[float] = field(default_factory=deque)
    _place: int | None = None
    _stuck_at_s: list[float] = field(default_factory=list)
    _excused_place: int | None = None
    _excused_times: int = 0

    def delay_s(self, now_s: float, place: int | None = None) -> float | None:
        """Return how long to wait after a failure now; None if it has failed too often.

        *place* is what it was at, the number of a batch, where that is known.
        """
        delay_s = self._delay_s(self._failed_at_s, now_s)
        if place is None or place != self._place:
            self._stuck_at_s = []
        self._place = place
        self._stuck_at_s.append(now_s)
        if len(self._failed_at_s) > self.most or self._stuck > self.most_stuck:
            return None
        return delay_s

    def excused_delay_s(self, now_s: float, place: int | None = None) -> float:
        """Return how long to wait after a failure that something else is to blame for.

        It does not count for what is too often. At a *place*, it counts as `excused` there.
        """
        if place is not None:
            self._excuse(place, 1)
        return self._delay_s(self._excused_at_s, now_s)

    def forgive(self, since_s: float) -> None:
        """Count the failures from *since_s* on no more: something else is to blame for them."""
        stuck = [at_s for at_s in self._stuck_at_s if at_s < since_s]
        if (forgiven := self._stuck - len(stuck)) and self._place is not None:
            self._excuse(self._place, forgiven)
        self._stuck_at_s = stuck
        self._failed_at_s = deque(at_s for at_s in self._failed_at_s if at_s < since_s)

    @property
    def excused(self) -> tuple[int, int | None]:
        """How many failures something else was to blame for, at the last such place."""
        return self._excused_times, self._excused_place

    @property
    def _stuck(self) -> int:
        return len(self._stuck_at_s)

    def _excuse(self, place: int, times: int) -> None:
        before = self._excused_times if place == self._excused_place else 0
        self._excused_times, self._excused_place = before + times, place

    def _delay_s(self, failed_at_s: deque[float], now_s: float) -> float:
        while failed_at_s and now_s - failed_at_s[0] > self.within_s:
            failed_at_s.popleft()
        failed_at_s.append(now_s)
        self.number += 1
        return float(min(_LONGEST_S, _FIRST_S * 2 ** (len(failed_at_s) - 1)))

    @property
    def why(self) -> str:
        """What there was too much of, in words."""
        if self._stuck > self.most_stuck:
            return f"failed {self._stuck} times at batch {self._place}"
        return f"failed {len(self._failed_at_s)} times in {self.within_s:g} s"


class NodeLosses:
    """The nodes that were lost, with the time of each loss.

    A batch fails with the node that one of its tasks ran on. Machines that may be taken away at
    any time (spot instances) would otherwise end an application that has no fault.

    >>> losses = NodeLosses()
    >>> losses.saw({}), losses.saw({"executor-1": 100.0}), losses.saw({"executor-1": 100.0})
    (None, 55.0, None)
    >>> losses.lately(120.0), losses.lately(150.0)
    ('executor-1', '')
    """

    def __init__(self) -> None:
        self._lost_s: Mapping[str, float] = {}

    def saw(self, lost_s: Mapping[str, float]) -> float | None:
        """Note when nodes were *lost*; return since when failures are explained by new losses.

        None if there is no new one.
        """
        before, self._lost_s = self._lost_s, dict(lost_s)
        new = [at_s for name, at_s in lost_s.items() if before.get(name) != at_s]
        return min(new) - _BEFORE_S if new else None

    def lately(self, now_s: float) -> str:
        """Return the node whose loss explains a failure now; empty if there is none."""
        recent = {n: at_s for n, at_s in self._lost_s.items() if now_s - at_s < _AFTER_S}
        return max(recent, key=recent.__getitem__, default="")

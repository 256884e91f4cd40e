"""Restart delays, and when to give up."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

_FIRST_S, _LONGEST_S = 0.1, 10.0

# Spark removes a silent executor after 30 s, hosts drop an agent after 10 s. A batch may fail
# before either, and a query that is restarted may be scheduled on the same executor again.
_BEFORE_S, _AFTER_S = 45.0, 45.0


@dataclass(slots=True)
class Restarts:
    """Restarts with growing delays, up to *most* failures within *within_s*.

    >>> restarts = Restarts(most=3)
    >>> [restarts.delay_s(at_s) for at_s in (0.0, 1.0, 2.0, 3.0)]
    [0.1, 0.2, 0.4, None]
    >>> restarts.delay_s(500.0), restarts.number
    (0.1, 5)

    More than *most_stuck* failures at the same batch end it too, however far apart they are;
    progress between two failures resets that count.

    >>> restarts = Restarts(most_stuck=2)
    >>> [restarts.delay_s(200.0 * n, batch) for n, batch in enumerate([7, 7, 8, 8, 8])]
    [0.1, 0.1, 0.1, 0.1, None]

    Failures that turn out to have an external cause are forgiven.

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
    _batch: int | None = None
    _stuck_at_s: list[float] = field(default_factory=list)
    _excused_batch: int | None = None
    _excused_times: int = 0

    def delay_s(self, now_s: float, batch: int | None = None) -> float | None:
        """Return the delay of the restart after a failure; None after too many failures.

        *batch* is the number of the batch that failed, if known.
        """
        delay_s = self._delay_s(self._failed_at_s, now_s)
        if batch is None or batch != self._batch:
            self._stuck_at_s = []
        self._batch = batch
        self._stuck_at_s.append(now_s)
        if len(self._failed_at_s) > self.most or self._stuck > self.most_stuck:
            return None
        return delay_s

    def excused_delay_s(self, now_s: float, batch: int | None = None) -> float:
        """Return the delay of the restart after a failure with an external cause.

        It does not count towards the limits. With a *batch*, it counts as `excused` there.
        """
        if batch is not None:
            self._excuse(batch, 1)
        return self._delay_s(self._excused_at_s, now_s)

    def forgive(self, since_s: float) -> None:
        """Remove the failures from *since_s* on from the counts: their cause is external."""
        stuck = [at_s for at_s in self._stuck_at_s if at_s < since_s]
        if (forgiven := self._stuck - len(stuck)) and self._batch is not None:
            self._excuse(self._batch, forgiven)
        self._stuck_at_s = stuck
        self._failed_at_s = deque(at_s for at_s in self._failed_at_s if at_s < since_s)

    @property
    def excused(self) -> tuple[int, int | None]:
        """The number of failures with an external cause at one batch, and that batch."""
        return self._excused_times, self._excused_batch

    @property
    def _stuck(self) -> int:
        return len(self._stuck_at_s)

    def _excuse(self, batch: int, times: int) -> None:
        before = self._excused_times if batch == self._excused_batch else 0
        self._excused_times, self._excused_batch = before + times, batch

    def _delay_s(self, failed_at_s: deque[float], now_s: float) -> float:
        while failed_at_s and now_s - failed_at_s[0] > self.within_s:
            failed_at_s.popleft()
        failed_at_s.append(now_s)
        self.number += 1
        return float(min(_LONGEST_S, _FIRST_S * 2 ** (len(failed_at_s) - 1)))

    @property
    def why(self) -> str:
        """The limit that was exceeded, in words."""
        if self._stuck > self.most_stuck:
            return f"failed {self._stuck} times at batch {self._batch}"
        return f"failed {len(self._failed_at_s)} times in {self.within_s:g} s"


class NodeLosses:
    """The nodes that were lost, with the time of each loss.

    A batch fails with the node that one of its tasks ran on. If such failures counted, machines
    that may be taken away at any time (spot instances) would end a healthy application.

    >>> losses = NodeLosses()
    >>> losses.saw({}), losses.saw({"executor-1": 100.0}), losses.saw({"executor-1": 100.0})
    (None, 55.0, None)
    >>> losses.lately(120.0), losses.lately(150.0)
    ('executor-1', '')
    """

    def __init__(self) -> None:
        self._lost_s: Mapping[str, float] = {}

    def saw(self, lost_s: Mapping[str, float]) -> float | None:
        """Take in the times of losses; return the time since when new ones explain failures.

        Return None if there is no new loss.
        """
        before, self._lost_s = self._lost_s, dict(lost_s)
        new = [at_s for name, at_s in lost_s.items() if before.get(name) != at_s]
        return min(new) - _BEFORE_S if new else None

    def lately(self, now_s: float) -> str:
        """Return the node whose loss explains a failure at *now_s*; empty if there is none."""
        recent = {n: at_s for n, at_s in self._lost_s.items() if now_s - at_s < _AFTER_S}
        return max(recent, key=recent.__getitem__, default="")

"""The tasks of the batch that runs: Spark knows how many there are, and some may not begin."""

from sojourn.host.batch.instructions import Arrival

__all__ = ["StageTasks"]

# For so long a batch whose first tasks have ended waits for those that have not begun.
_MISSING_S = 10.0


class StageTasks:
    """Of which stage of Spark the tasks of a batch are, and since when some have ended.

    >>> tasks, first = StageTasks(), Arrival(attempt=1, batch=7)
    >>> tasks.begins(first, stage=3), tasks.begins(first, stage=3)
    (True, False)
    >>> tasks.of(3) == first, tasks.of(2)
    (True, None)
    >>> tasks.watch(1.0, "1 of 2 tasks did not begin")
    ''
    >>> tasks.watch(11.1, "1 of 2 tasks did not begin")
    '1 of 2 tasks did not begin after 10 s; Spark may have too few slots'
    """

    def __init__(self) -> None:
        self._arrival: Arrival | None = None
        self._stage = 0
        self._ended_s: float | None = None

    def begins(self, arrival: Arrival, stage: int) -> bool:
        """Return whether a relay that comes is the first of its batch."""
        if self._arrival == arrival:
            return False
        self._arrival, self._stage, self._ended_s = arrival, stage, None
        return True

    def of(self, stage: int) -> Arrival | None:
        """Return the batch that runs, if its tasks are those of *stage*."""
        return self._arrival if self._stage == stage else None

    def watch(self, now_s: float, missing: str) -> str:
        """Return why the batch has to fail, if tasks are *missing* for too long.

        It would never end.
        """
        if self._arrival is None or not missing:
            self._ended_s = None
        elif self._ended_s is None:
            self._ended_s = now_s
        elif now_s - self._ended_s > _MISSING_S:
            return f"{missing} after {_MISSING_S:g} s; Spark may have too few slots"
        return ""

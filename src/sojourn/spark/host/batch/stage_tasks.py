"""The tasks of the batch that runs: Spark knows how many there are, and some may not begin."""

from sojourn.spark.host.desk.events import Arrival

__all__ = ["StageTasks"]

# For so long a batch whose first tasks have ended waits for those that have not begun.
_MISSING_S = 10.0
# Within so much time after the first task all others begin. Spark may have given one to an
# executor that is gone: it notices after half a minute (`spark/driver/master`), and runs it
# elsewhere.
_BEGIN_S = 90.0


class StageTasks:
    """Of which stage of Spark the tasks of a batch are, and since when some have ended.

    >>> tasks, first = StageTasks(), Arrival(attempt=1, batch=7)
    >>> tasks.begins(first, stage=3), tasks.begins(first, stage=3)
    (True, False)
    >>> tasks.of(3) == first, tasks.of(2)
    (True, None)
    >>> tasks.watch(1.0, "1 of 2 tasks have begun", "")
    ''
    >>> tasks.watch(11.1, "1 of 2 tasks have begun", "")
    '1 of 2 tasks have begun after 10 s; Spark may have too few slots'
    >>> tasks.watch(12.0, "", "1 of 2 tasks have begun")
    ''
    >>> tasks.watch(102.1, "", "1 of 2 tasks have begun")
    '1 of 2 tasks have begun after 90 s; Spark may have too few slots, or one of its ...
    """

    def __init__(self) -> None:
        self._arrival: Arrival | None = None
        self._stage = 0
        self._began_s: float | None = None
        self._ended_s: float | None = None

    def begins(self, arrival: Arrival, stage: int) -> bool:
        """Return whether a relay that comes is the first of its batch."""
        if self._arrival == arrival:
            return False
        self._arrival, self._stage = arrival, stage
        self._began_s = self._ended_s = None
        return True

    def is_outdated(self, stage: int) -> bool:
        """Tell whether tasks of a later stage have come: Spark numbers stages in order.

        A task of an earlier run that was held up before it could connect would otherwise be
        the first of its run, and that run count as the latest.

        >>> tasks = StageTasks()
        >>> tasks.begins(Arrival(attempt=1, batch=7), stage=3)
        True
        >>> tasks.is_outdated(2), tasks.is_outdated(3)
        (True, False)
        """
        return stage < self._stage

    def of(self, stage: int) -> Arrival | None:
        """Return the batch that runs, if its tasks are those of *stage*."""
        return self._arrival if self._stage == stage else None

    def watch(self, now_s: float, missing: str, not_begun: str) -> str:
        """Return why the batch has to fail: tasks are *missing*, or *not_begun*, for too long.

        Those that are missing others wait for, at the end of the batch.
        """
        self._began_s = _since(self._began_s, now_s, self._arrival and not_begun)
        self._ended_s = _since(self._ended_s, now_s, self._arrival and missing)
        if self._ended_s is not None and now_s - self._ended_s > _MISSING_S:
            return f"{missing} after {_MISSING_S:g} s; Spark may have too few slots"
        if self._began_s is not None and now_s - self._began_s > _BEGIN_S:
            return (
                f"{not_begun} after {_BEGIN_S:g} s; Spark may have too few slots, or one of "
                "its executors does not answer"
            )
        return ""


def _since(since_s: float | None, now_s: float, what: object) -> float | None:
    """Return since when there is something; None if there is nothing."""
    if not what:
        return None
    return now_s if since_s is None else since_s

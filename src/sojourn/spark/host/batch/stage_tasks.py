"""Watches for tasks of the current batch that Spark has scheduled and that do not begin."""

from sojourn.spark.host.desk.events import RecordArrival

__all__ = ["StageTasks"]

# How long a batch waits for tasks that have not begun, once its first task has ended.
_MISSING_S = 10.0
# How long it waits for them after its first task has begun. Spark may have assigned a task to
# an executor that is gone: it notices after half a minute (`spark/driver/master`), and runs
# the task elsewhere.
_BEGIN_S = 90.0


class StageTasks:
    """The Spark stage of the current batch, and the time limits of its tasks.

    >>> tasks, first = StageTasks(), RecordArrival(attempt=1, batch=7)
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
        self._arrival: RecordArrival | None = None
        self._stage = 0
        self._began_s: float | None = None
        self._ended_s: float | None = None

    def begins(self, arrival: RecordArrival, stage: int) -> bool:
        """Return whether a relay is the first of its batch; if so, begin that batch."""
        if self._arrival == arrival:
            return False
        self._arrival, self._stage = arrival, stage
        self._began_s = self._ended_s = None
        return True

    def is_outdated(self, stage: int) -> bool:
        """Return whether tasks of a later stage have begun: Spark numbers stages in order.

        A delayed task of an earlier run could otherwise be the first of that run to connect,
        and the run would count as the latest.

        >>> tasks = StageTasks()
        >>> tasks.begins(RecordArrival(attempt=1, batch=7), stage=3)
        True
        >>> tasks.is_outdated(2), tasks.is_outdated(3)
        (True, False)
        """
        return stage < self._stage

    def of(self, stage: int) -> RecordArrival | None:
        """Return the current batch, if its tasks belong to *stage*."""
        return self._arrival if self._stage == stage else None

    def watch(self, now_s: float, missing: str, not_begun: str) -> str:
        """Return why the batch must fail; empty if no time limit has passed.

        *missing* describes tasks that others wait for at the end of the batch, *not_begun*
        tasks that have not begun; each is empty if there are none.
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
    """Return the time since which *what* holds, now if it is new; None if it does not hold."""
    if not what:
        return None
    return now_s if since_s is None else since_s

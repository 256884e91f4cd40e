"""The tasks of the current batch: their relays, and time limits for those that do not begin."""

from collections.abc import Iterator

from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.wire.record import Partition

# Why relays are refused that belong to a batch which has lost one.
LOST = "a task of its batch was lost, so the whole batch runs again"
# How long a batch waits for tasks that have not begun, once its first task has ended.
_MISSING_S = 10.0
# How long it waits for them after its first task has begun. Spark may have assigned a task to
# an executor that is gone: it notices after half a minute (`spark/driver/master`), and runs
# the task elsewhere.
_BEGIN_S = 90.0


class BatchRelays:
    """The relays of a batch, one for each task."""

    def __init__(self) -> None:
        self._tasks: dict[int, int] = {}  # by relay, in order of arrival
        self.reader_of: dict[Partition, int] = {}
        """The relay that reads a partition."""
        self._ended: set[int] = set()  # tasks
        self.expected: int | None = None
        """Number of tasks of the batch."""
        # Finished relays may leave, because their cut is on disk; one that leaves before fails
        # the batch.
        self.lost = self.finished = False

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[int]:
        return iter(self._tasks)

    def __contains__(self, relay: int) -> bool:
        return relay in self._tasks

    @property
    def missing(self) -> str:
        """What the relays that have ended wait for; empty if for nothing."""
        if not self._ended:
            return ""
        if self.expected is None:
            return "the number of tasks of the batch is not known"
        return self.not_begun

    @property
    def not_begun(self) -> str:
        """How many tasks have begun, as text; empty if all have, or none has been counted."""
        if self.expected is None or self.finished:
            return ""
        if not 0 < len(self._tasks) < self.expected:
            return ""
        return f"{len(self._tasks)} of {self.expected} tasks of the batch have begun"

    @property
    def all_ended(self) -> bool:
        """Whether all relays have handed over all rows that Spark has read."""
        return len(self._ended) == self.expected

    def has(self, task: int) -> bool:
        return task in self._tasks.values()

    def came(self, relay: int, task: int) -> None:
        self._tasks[relay] = task

    def of(self, partition: Partition) -> int:
        """Return the relay that reads a partition; any other if none does."""
        relay = self.reader_of.get(partition)
        return next(iter(self._tasks)) if relay is None else relay

    def ended(self, relay: int) -> None:
        """Mark a relay as ended: it has handed over all rows that Spark has read."""
        if relay in self._tasks:
            self._ended.add(self._tasks[relay])

    def left(self, relay: int) -> list[int]:
        """Remove a relay; return those to refuse if that fails the batch."""
        task = self._tasks.pop(relay, None)
        if task is None or self.finished:
            return []
        return self.lose()

    def lose(self) -> list[int]:
        """Fail the batch, because a task is lost; return the relays to refuse."""
        self.lost = True
        refused = list(self._tasks)
        self._tasks, self.reader_of, self._ended = {}, {}, set()
        return refused


class StageTasks:
    """The Spark stage of the current batch, and the time limits of its tasks.

    >>> tasks, first = StageTasks(), CutId(batch=7, attempt=1)
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
        self._cut: CutId | None = None
        self._stage = 0
        self._began_s: float | None = None
        self._ended_s: float | None = None

    def begins(self, cut: CutId, stage: int) -> bool:
        """Return whether a relay is the first of its batch; if so, begin that batch."""
        if self._cut == cut:
            return False
        self._cut, self._stage = cut, stage
        self._began_s = self._ended_s = None
        return True

    def is_outdated(self, stage: int) -> bool:
        """Return whether tasks of a later stage have begun: Spark numbers stages in order.

        A delayed task of an earlier run could otherwise be the first of that run to connect,
        and the run would count as the latest.

        >>> tasks = StageTasks()
        >>> tasks.begins(CutId(batch=7, attempt=1), stage=3)
        True
        >>> tasks.is_outdated(2), tasks.is_outdated(3)
        (True, False)
        """
        return stage < self._stage

    def of(self, stage: int) -> CutId | None:
        """Return the cut that the current batch will make, if its tasks belong to *stage*."""
        return self._cut if self._stage == stage else None

    def watch(self, now_s: float, missing: str, not_begun: str) -> str:
        """Return why the batch must fail; empty if no time limit has passed.

        *missing* describes tasks that others wait for at the end of the batch, *not_begun*
        tasks that have not begun; each is empty if there are none.
        """
        self._began_s = _since(self._began_s, now_s, self._cut and not_begun)
        self._ended_s = _since(self._ended_s, now_s, self._cut and missing)
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

"""The relays of the current batch: which have begun, and which have handed over all rows."""

from collections.abc import Iterator

from sojourn.spark.wire.record import Partition

__all__ = ["LOST", "BatchRelays"]

# Why relays are refused that belong to a batch which has lost one.
LOST = "a task of its batch was lost, so the whole batch runs again"


class BatchRelays:
    """The relays of a batch, one for each task."""

    def __init__(self) -> None:
        self._tasks: dict[int, int] = {}  # by relay, in order of arrival
        self._of: dict[Partition, int] = {}
        self._ended: set[int] = set()  # tasks
        self._expected: int | None = None
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
        if self._expected is None:
            return "the number of tasks of the batch is not known"
        return self.not_begun

    @property
    def not_begun(self) -> str:
        """How many tasks have begun, as text; empty if all have, or none has been counted."""
        if self._expected is None or not 0 < len(self._tasks) < self._expected:
            return ""
        return f"{len(self._tasks)} of {self._expected} tasks of the batch have begun"

    @property
    def all_ended(self) -> bool:
        """Whether all relays have handed over all rows that Spark has read."""
        return len(self._ended) == self._expected

    def has(self, task: int) -> bool:
        """Return whether a task has begun."""
        return task in self._tasks.values()

    def came(self, relay: int, task: int) -> None:
        """Add the relay of a task that begins."""
        self._tasks[relay] = task

    def expect(self, number: int) -> None:
        """Set the number of tasks of the batch."""
        self._expected = number

    def reads(self, relay: int, partition: Partition) -> None:
        """Set the relay that reads a partition."""
        self._of[partition] = relay

    def of(self, partition: Partition) -> int:
        """Return the relay that reads a partition; any other if none does."""
        relay = self._of.get(partition)
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
        self._tasks, self._of, self._ended = {}, {}, set()
        return refused

"""Backfill of new processors with the latest broadcast record of each key.

A processor takes no other record before it has them all.
"""

from collections import deque
from collections.abc import Sequence

from sojourn.spark.host.desk.instructions import Give, NotKept
from sojourn.spark.host.desk.latest import Latest
from sojourn.spark.host.desk.processors import Processor, Processors
from sojourn.spark.wire.record import Record

__all__ = ["Lessons"]

# The most records, and about the most bytes, that a processor gets in one message.
_MOST, _MOST_BYTES = 100, 1 << 20


class Lessons:
    """Sends processors the latest broadcast record of each key before any other record."""

    def __init__(self, processors: Processors) -> None:
        self._processors, self.latest = processors, Latest()
        # Set once a processor dies of a portion, to find the record to blame.
        self._one_at_a_time = False
        # Running processors that are not backfilled again yet after a restore.
        self._owed: set[int] = set()

    @property
    def are_owed(self) -> bool:
        """Whether running processors have to be backfilled again."""
        return bool(self._owed)

    def forget(self, latest: Sequence[Record]) -> None:
        """Keep only the *latest* given here, and schedule them for all running processors."""
        self.latest = Latest()
        for record in latest:
            self.latest.keep(0, record)
        if not latest:
            return
        for name, processor in self._processors:
            if processor.here:
                processor.to_know = deque(self.latest.records)
                self._processors.withdraw(name)
                self._owed.add(name)

    def begin(self, processor: Processor) -> None:
        """Schedule all records for a processor that has started."""
        processor.to_know = deque(self.latest.records)

    def told(self, name: int, processor: Processor, now_s: float) -> list[Give]:
        """Return the next portion for a processor; after the last one it takes records."""
        if processor.learning:
            processor.since_s = now_s
            return []
        size_bytes = 0
        while processor.to_know and size_bytes < _MOST_BYTES:
            record = processor.to_know.popleft()
            processor.learning.append(record)
            size_bytes += record.size_bytes
            if self._one_at_a_time or len(processor.learning) >= _MOST:
                break
        if processor.learning:
            processor.since_s = now_s
            return [Give(name, tuple(processor.learning), new=False)]
        self._processors.enter(name)
        return []

    def told_again(self, now_s: float) -> list[Give]:
        """Return the first portions for running processors that have become idle."""
        done: list[Give] = []
        for name in sorted(self._owed):
            processor = self._processors.get(name)
            if processor is not None and processor.here and processor.records:
                continue  # it still works on a record from before the restore
            self._owed.discard(name)
            if processor is not None and processor.here and not processor.learning:
                done += self.told(name, processor, now_s)
        return done

    def failed(self, processor: Processor, reason: str) -> list[NotKept]:
        """Drop the record that killed a processor during its backfill.

        Of several records it is not known which one did: from now on each is sent alone.
        """
        if not processor.learning:
            return []
        if len(processor.learning) > 1:
            self._one_at_a_time = True
            return []
        (record,) = processor.learning
        self.latest.drop(record)
        return [NotKept(record, reason)]

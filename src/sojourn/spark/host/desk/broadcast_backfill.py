"""What processors have to know before they take records: the latest of what is for everyone."""

from collections import deque
from collections.abc import Sequence

from sojourn.spark.host.desk.instructions import Give, NotKept
from sojourn.spark.host.desk.latest import Latest
from sojourn.spark.host.desk.processors import Processor, Processors
from sojourn.spark.wire.record import Record

__all__ = ["Lessons"]

# What a new processor has to know is given in portions.
_MOST, _MOST_BYTES = 100, 1 << 20


class Lessons:
    """Tells *processors* the `latest` record of each key; who knows all can take records."""

    def __init__(self, processors: Processors) -> None:
        self._processors, self.latest = processors, Latest()
        self._one_at_a_time = False
        self._owed: set[int] = set()

    @property
    def are_owed(self) -> bool:
        """Whether some that were running have to be told all of it again."""
        return bool(self._owed)

    def forget(self, latest: Sequence[Record]) -> None:
        """Know the *latest* alone, and owe them to all that run."""
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
        """Let a processor that has started know all of it."""
        processor.to_know = deque(self.latest.records)

    def told(self, name: int, processor: Processor, now_s: float) -> list[Give]:
        """Tell a processor the next that it has to know; when it knows all, it counts."""
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
        """Begin to tell those that were running what they have to know now, when they idle."""
        done: list[Give] = []
        for name in sorted(self._owed):
            processor = self._processors.get(name)
            if processor is not None and processor.here and processor.records:
                continue  # of a record that is nobody's any more
            self._owed.discard(name)
            if processor is not None and processor.here and not processor.learning:
                done += self.told(name, processor, now_s)
        return done

    def failed(self, processor: Processor, reason: str) -> list[NotKept]:
        """Find out which record a processor died of while it was told what it has to know."""
        if not processor.learning:
            return []
        if len(processor.learning) > 1:
            self._one_at_a_time = True
            return []
        (record,) = processor.learning
        self.latest.drop(record)
        return [NotKept(record, reason)]

"""Backfill of new processors with the latest broadcast record of each key."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from sojourn.spark.host.desk.instructions import Give, NotKept
from sojourn.spark.host.desk.processors import Processor, Processors
from sojourn.spark.wire.record import Record

# The most records, and about the most bytes, that a processor gets in one message.
_MOST, _MOST_BYTES = 100, 1 << 20


@dataclass(slots=True)
class Latest:
    """The latest broadcast record of each key, for processors that start later.

    At most *most* records and *most_bytes*; a record beyond these limits is not kept.

    >>> latest = Latest(most=1)
    >>> latest.keep(1, Record("a", b"old", key="k"))
    ''
    >>> latest.keep(2, Record("b", b"new", key="k"))
    ''
    >>> [record.payload for record in latest.records]
    [b'new']
    >>> latest.keep(3, Record("c", b"more", key="other"))
    'the limit of 1 keys is reached'
    """

    most: int = 10_000
    most_bytes: int = 64 << 20
    _kept: dict[tuple[str, str | None], tuple[int, Record]] = field(default_factory=dict)
    _bytes: int = 0

    @property
    def records(self) -> list[Record]:
        """All records, in order of arrival."""
        return [record for _, record in sorted(self._kept.values(), key=lambda kept: kept[0])]

    def keep(self, number: int, record: Record) -> str:
        """Keep a record in place of the previous one of its key.

        Return the reason if a limit prevents that. A record with a lower *number* than the one
        kept is older, and ignored.
        """
        if record.key is None or self.has_newer(number, record):
            return ""
        self.drop(record)
        if len(self._kept) >= self.most:
            return f"the limit of {self.most} keys is reached"
        if self._bytes + record.size_bytes > self.most_bytes:
            return f"the limit of {self.most_bytes} bytes is reached"
        self._kept[record.stream, record.key] = number, record
        self._bytes += record.size_bytes
        return ""

    def has_newer(self, number: int, record: Record) -> bool:
        """Return whether a later record of the same key is kept."""
        latest, _ = self._kept.get((record.stream, record.key), (number, record))
        return latest > number

    def has(self, record: Record) -> bool:
        """Return whether *record* itself is the one kept for its key."""
        _, kept = self._kept.get((record.stream, record.key), (0, None))
        return kept is record

    def drop(self, record: Record) -> None:
        """Remove the record of the key of *record*."""
        _, kept = self._kept.pop((record.stream, record.key), (0, None))
        self._bytes -= kept.size_bytes if kept is not None else 0


class Lessons:
    """Sends processors the latest broadcast records, before they take any other record."""

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

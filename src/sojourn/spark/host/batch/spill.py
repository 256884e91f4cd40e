"""Spilled records: on disk, in order, those that wait for an operator beyond its memory share.

They are written in immutable segments, so a cut names its segments instead of copying them.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sojourn.spark.host.batch.cut import OpenRecord, Segment

if TYPE_CHECKING:
    from sojourn.spark.wire.record import Partition

__all__ = ["SegmentStore", "Spill"]

# Small enough that writing or reading a segment does not delay the host's event loop.
_MOST_RECORDS, _MOST_BYTES = 2_000, 1 << 20


class SegmentStore(Protocol):
    """Segments on disk."""

    def write_segment(self, batch: int, records: Sequence[OpenRecord]) -> str:
        """Write records that were spilled in a batch as a segment, and return its name."""
        ...

    def read_segment(self, name: str) -> Sequence[OpenRecord]:
        """Return the records of a segment."""
        ...

    def drop_segments(self, batch: int, names: Iterable[str]) -> None:
        """Remove segments written before a batch, except *names*."""
        ...


@dataclass(slots=True)
class _Queue:
    """The spilled records of one operator."""

    segments: deque[Segment] = field(default_factory=deque)
    newest: list[OpenRecord] = field(default_factory=list)
    """Records after the last segment, still in memory until they fill one."""
    newest_bytes: int = 0
    records: int = 0


class Spill:
    """The spilled records of all operators, each operator's in order."""

    def __init__(self, store: SegmentStore, *, most: int = _MOST_RECORDS) -> None:
        self._store, self._most = store, most
        self._queues: dict[str, _Queue] = {}
        self._records = 0
        self.bytes = 0

    def __len__(self) -> int:
        return self._records

    def waiting(self, operator: str) -> int:
        """Return the number of spilled records of an operator."""
        queue = self._queues.get(operator)
        return 0 if queue is None else queue.records

    def put(self, batch: int, record: OpenRecord) -> None:
        """Append a record of an operator."""
        queue = self._queues.setdefault(record.operator, _Queue())
        size_bytes = record.record.size_bytes
        queue.newest.append(record)
        queue.newest_bytes += size_bytes
        self._count(queue, 1, size_bytes)
        if len(queue.newest) >= self._most or queue.newest_bytes >= _MOST_BYTES:
            self._write(batch, record.operator, queue)

    def take(self, operator: str) -> Sequence[OpenRecord]:
        """Take the oldest records of an operator, one segment at a time; empty if none."""
        queue = self._queues.get(operator)
        if queue is None:
            return ()
        if queue.segments:
            first = queue.segments.popleft()
            taken, size_bytes = self._store.read_segment(first.name), first.bytes
        else:
            taken, size_bytes = queue.newest, queue.newest_bytes
            queue.newest, queue.newest_bytes = [], 0
        self._count(queue, -len(taken), -size_bytes)
        if not queue.records:
            del self._queues[operator]
        return taken

    def segments(self, batch: int) -> tuple[Segment, ...]:
        """Return all records as segments, for the cut of a batch."""
        for operator, queue in self._queues.items():
            if queue.newest:
                self._write(batch, operator, queue)
        return tuple(segment for queue in self._queues.values() for segment in queue.segments)

    def restore(self, segments: Iterable[Segment]) -> None:
        """Forget all records, and resume with the segments of a cut."""
        self._queues, self._records, self.bytes = {}, 0, 0
        for segment in segments:
            queue = self._queues.setdefault(segment.operator, _Queue())
            queue.segments.append(segment)
            self._count(queue, segment.records, segment.bytes)

    def committed(self, batch: int, segments: Iterable[Segment]) -> None:
        """Remove segments before *batch*, whose cut is committed, except its own *segments*.

        Later segments stay: they may belong to another host that is still alive.
        """
        self._store.drop_segments(batch, [segment.name for segment in segments])

    def _write(self, batch: int, operator: str, queue: _Queue) -> None:
        lowest: dict[Partition, int] = {}
        for record in queue.newest:
            partition, offset = record.root
            lowest[partition] = min(offset, lowest.get(partition, offset))
        name = self._store.write_segment(batch, queue.newest)
        queue.segments.append(
            Segment(operator, name, len(queue.newest), queue.newest_bytes, lowest)
        )
        queue.newest, queue.newest_bytes = [], 0

    def _count(self, queue: _Queue, records: int, size_bytes: int) -> None:
        queue.records += records
        self._records += records
        self.bytes += size_bytes

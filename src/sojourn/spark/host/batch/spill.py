"""Spilled records: on disk, in order, those that wait for an operator beyond its memory share.

They are written in immutable segments, so a cut names its segments instead of copying them.
"""

import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from sojourn.errors import BadFile, DiskFull, EngineError
from sojourn.files.durable_file import RESTORE, read_checked, sealed, unsealed, unwritable
from sojourn.files.private_files import make_folder, sync_folder, write_new
from sojourn.spark.host.batch.cut import OpenRecord, Segment

if TYPE_CHECKING:
    from sojourn.spark.wire.record import Partition

# Small enough that writing or reading a segment does not delay the host's event loop.
_MOST_RECORDS, _MOST_BYTES = 2_000, 1 << 20
_decode = msgspec.msgpack.Decoder(list[OpenRecord]).decode
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class SegmentFiles:
    """The files in *folder*, named `BATCH-ID`.

    Segments are written in the middle of a decision, which must not be interrupted: on a full
    disk they stay in memory until `flush` writes them.
    """

    folder: Path
    _unsynced: set[str] = field(default_factory=set)
    """Segments that a power failure may lose."""
    unwritten: dict[str, bytes] = field(default_factory=dict)
    """Segments for which there was no room, by name."""

    def write(self, batch: int, records: Sequence[OpenRecord]) -> str:
        """Write a segment, later if the disk is full, and return its name."""
        name, content = f"{batch}-{uuid4().hex}", sealed(_encode(records))
        try:
            self._write(name, content)
        except DiskFull:
            self.unwritten[name] = content
        return name

    def flush(self) -> None:
        """Write the segments in memory. Raise `DiskFull` if there still is no room."""
        for name, content in list(self.unwritten.items()):
            self._write(name, content)
            del self.unwritten[name]

    def _write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        try:
            make_folder(self.folder)
            write_new(path, content)
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            raise unwritable(f"spilled records ({path})", self.folder, error) from error
        self._unsynced.add(name)

    def read(self, name: str) -> list[OpenRecord]:
        path = self.folder / name
        try:
            if name in self.unwritten:
                return _decode(unsealed(self.unwritten[name]))
            return _decode(read_checked(path))
        except FileNotFoundError as error:
            raise BadFile(str(path), "is missing", RESTORE) from error
        except msgspec.MsgspecError as error:
            raise BadFile(str(path), f"cannot be read: {error}", RESTORE) from error

    def sync(self, names: Iterable[str]) -> None:
        waiting = self._unsynced.intersection(names)
        try:
            for name in waiting:
                with (self.folder / name).open("rb") as file:
                    os.fsync(file.fileno())
            if waiting:
                sync_folder(self.folder)
        except OSError as error:
            raise EngineError(
                f"{self.folder} cannot be written: {error.strerror}; check the disk"
            ) from error
        self._unsynced -= waiting

    def drop(self, batch: int, names: Iterable[str]) -> None:
        """Remove segments written before a batch, except *names*.

        Later segments stay: they may belong to another host that is still alive.
        """
        kept = set(names)
        for path in self.folder.glob("*-*"):
            written = path.name.partition("-")[0]
            if path.name not in kept and written.isdigit() and int(written) < batch:
                path.unlink(missing_ok=True)
                self._unsynced.discard(path.name)
        for name in [name for name in self.unwritten if name not in kept]:
            if int(name.partition("-")[0]) < batch:
                del self.unwritten[name]


@dataclass(slots=True)
class _Queue:
    segments: deque[Segment] = field(default_factory=deque)
    newest: list[OpenRecord] = field(default_factory=list)
    """Records after the last segment, still in memory until they fill one."""
    newest_bytes: int = 0
    records: int = 0


class Spill:
    """The spilled records of all operators, each operator's in order."""

    def __init__(self, files: SegmentFiles, *, most: int = _MOST_RECORDS) -> None:
        self._files, self._most = files, most
        self._queues: dict[str, _Queue] = {}
        self._records = 0
        self.bytes = 0

    def __len__(self) -> int:
        return self._records

    def waiting(self, operator: str) -> int:
        queue = self._queues.get(operator)
        return 0 if queue is None else queue.records

    def put(self, batch: int, record: OpenRecord) -> None:
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
            taken, size_bytes = self._files.read(first.name), first.bytes
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

    def _write(self, batch: int, operator: str, queue: _Queue) -> None:
        lowest: dict[Partition, int] = {}
        for record in queue.newest:
            partition, offset = record.root
            lowest[partition] = min(offset, lowest.get(partition, offset))
        name = self._files.write(batch, queue.newest)
        queue.segments.append(
            Segment(operator, name, len(queue.newest), queue.newest_bytes, lowest)
        )
        queue.newest, queue.newest_bytes = [], 0

    def _count(self, queue: _Queue, records: int, size_bytes: int) -> None:
        queue.records += records
        self._records += records
        self.bytes += size_bytes

"""Segments on disk: spilled records in immutable files."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import msgspec

from sojourn.errors import BadFile, DiskFull, EngineError
from sojourn.files.durable_file import RESTORE, read_checked, sealed, unsealed, unwritable
from sojourn.files.private_files import make_folder, sync_folder, write_new
from sojourn.spark.host.batch.cut import OpenRecord

__all__ = ["SegmentFiles"]

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
    _unwritten: dict[str, bytes] = field(default_factory=dict)
    """Segments for which there was no room, by name."""

    def write(self, batch: int, records: Sequence[OpenRecord]) -> str:
        """Write a segment, later if the disk is full, and return its name."""
        name, content = f"{batch}-{uuid4().hex}", sealed(_encode(records))
        try:
            self._write(name, content)
        except DiskFull:
            self._unwritten[name] = content
        return name

    @property
    def wait_for_room(self) -> bool:
        """Whether segments are in memory because the disk was full."""
        return bool(self._unwritten)

    def flush(self) -> None:
        """Write the segments in memory. Raise `DiskFull` if there still is no room."""
        for name, content in list(self._unwritten.items()):
            self._write(name, content)
            del self._unwritten[name]

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
        """Return the records of a segment."""
        path = self.folder / name
        try:
            if name in self._unwritten:
                return _decode(unsealed(self._unwritten[name]))
            return _decode(read_checked(path))
        except FileNotFoundError as error:
            raise BadFile(str(path), "is missing", RESTORE) from error
        except msgspec.MsgspecError as error:
            raise BadFile(str(path), f"cannot be read: {error}", RESTORE) from error

    def sync(self, names: Iterable[str]) -> None:
        """Sync segments to disk."""
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
        """Remove segments written before a batch, except *names*."""
        kept = set(names)
        for path in self.folder.glob("*-*"):
            written = path.name.partition("-")[0]
            if path.name not in kept and written.isdigit() and int(written) < batch:
                path.unlink(missing_ok=True)
                self._unsynced.discard(path.name)
        for name in [name for name in self._unwritten if name not in kept]:
            if int(name.partition("-")[0]) < batch:
                del self._unwritten[name]

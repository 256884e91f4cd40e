"""Segments on disk: records that were spilled, in files that are written once."""

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import msgspec

from sojourn.durable_file import sync_folder
from sojourn.errors import BadFile, EngineError
from sojourn.host.batch.cut import OpenRecord

__all__ = ["SegmentFiles"]

_decode = msgspec.msgpack.Decoder(list[OpenRecord]).decode
_encode = msgspec.msgpack.Encoder().encode
_WAY_OUT = "restore it, or start without this state (--fresh)"


@dataclass(slots=True)
class SegmentFiles:
    """The files in *folder*, `BATCH-ID`; what is *unsynced* may be lost with the machine."""

    folder: Path
    _unsynced: set[str] = field(default_factory=set)

    def write(self, batch: int, records: Sequence[OpenRecord]) -> str:
        """Write a segment, and return its name."""
        name = f"{batch}-{uuid4().hex}"
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_encode(records))
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            way_out = f"{'make room in' if full else 'check'} {self.folder}"
            raise EngineError(
                f"records that wait for {records[0].operator} cannot be written to {path}: "
                f"{error.strerror}; {way_out}"
            ) from error
        self._unsynced.add(name)
        return name

    def read(self, name: str) -> list[OpenRecord]:
        """Return the records of a segment."""
        path = self.folder / name
        try:
            return _decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            raise BadFile(str(path), f"cannot be read: {error}", _WAY_OUT) from error

    def sync(self, names: Iterable[str]) -> None:
        """Wait until segments are on disk."""
        waiting = self._unsynced.intersection(names)
        try:
            for name in waiting:
                with (self.folder / name).open("rb") as file:
                    os.fsync(file.fileno())
            if waiting:
                sync_folder(self.folder)
                sync_folder(self.folder.parent)
        except OSError as error:
            raise EngineError(
                f"{self.folder} cannot be written: {error.strerror}; check the disk"
            ) from error
        self._unsynced -= waiting

    def drop(self, batch: int, names: Iterable[str]) -> None:
        """Remove what was written before a batch, but for *names*."""
        kept = set(names)
        for path in self.folder.glob("*-*"):
            written = path.name.partition("-")[0]
            if path.name not in kept and written.isdigit() and int(written) < batch:
                path.unlink(missing_ok=True)
                self._unsynced.discard(path.name)

"""The latest broadcast records in a file, for the host that takes the place of a dead one."""

from contextlib import suppress
from pathlib import Path

import msgspec

from sojourn.host.latest import Latest
from sojourn.host.messages import Frames, Record, framed

__all__ = ["LatestFile"]

_decode = msgspec.msgpack.Decoder(Record).decode


class LatestFile:
    """What is kept, as it was kept, in the file *path*; it lives as long as its folder.

    A record is in it before it is answered. What the system has written survives the death
    of a process, though not of the machine: nor does the folder.
    """

    def __init__(self, path: Path, *, most_bytes: int = 256 << 20) -> None:
        self._path, self._most_bytes = path, most_bytes

    def read(self) -> Latest:
        """Return what was kept by the host before this one."""
        latest = Latest()
        if self._path.exists():
            with suppress(msgspec.MsgspecError):  # half a record, on a disk that was full
                for body in Frames().fed(self._path.read_bytes()):
                    latest.keep(0, _decode(body))
            self._write(latest)  # the last record may not be whole
        return latest

    def add(self, record: Record, latest: Latest) -> None:
        """Write down a record that is now among the *latest*."""
        with self._path.open("ab") as file:
            file.write(framed(record))
            size_bytes = file.tell()
        if size_bytes > self._most_bytes:
            self._write(latest)

    def _write(self, latest: Latest) -> None:
        new = self._path.with_suffix(".new")
        new.write_bytes(b"".join(map(framed, latest.records)))
        new.replace(self._path)

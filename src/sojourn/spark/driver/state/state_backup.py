"""The states of an application in one file: a backup, and the way to another machine.

A header says of which operators they are; then come keys with their states, in pieces that
each have a checksum, and at the end how many there are. States are as a host keeps them, with
their reminders and the times at which they expire.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import msgspec

from sojourn.errors import BadFile
from sojourn.files.durable_file import unwritable
from sojourn.files.private_files import FILE_MODE, sync_folder

__all__ = ["BackupHeader", "StateBackup", "write_backup"]

_MAGIC = b"sojourn states 1\n"
_FRAME = Struct("!II")  # the length of a piece, and its checksum
_AT_ONCE = 1000
_WAY_OUT = "use another file of `sojourn state --export FILE`"


class BackupHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Whose states these are: by operator, their form as the state folder describes it.

    They are as of *batches*, by part.
    """

    application: str
    forms: dict[str, dict[str, Any]]
    batches: dict[str, int]


class _Piece(msgspec.Struct, array_like=True, frozen=True):
    """States of one name: an operator, or what is kept beside it. The last has no name."""

    name: str
    states: list[tuple[str, bytes]]
    number: int = 0


_encode = msgspec.msgpack.Encoder().encode
_Decoded = TypeVar("_Decoded")


def write_backup(
    path: Path, header: BackupHeader, states: Mapping[str, Iterable[tuple[str, bytes]]]
) -> int:
    """Write a backup, and return how many states are in it; it replaces the file at *path*."""
    new, number = path.with_name(f"{path.name}.new"), 0
    try:
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, FILE_MODE), "wb") as file:
            file.write(_MAGIC + _framed(_encode(header)))
            for name, every in states.items():
                left = iter(every)
                while some := list(islice(left, _AT_ONCE)):
                    number += len(some)
                    file.write(_framed(_encode(_Piece(name, some))))
            file.write(_framed(_encode(_Piece("", [], number))))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(str(path), path.parent, error) from error
    finally:
        with suppress(OSError):
            new.unlink()
    return number


@dataclass(frozen=True, slots=True)
class StateBackup:
    """A backup in the file at *path*. Raise `BadFile` where it is not as it was written."""

    path: Path

    def header(self) -> BackupHeader:
        """Return whose states these are."""
        with self._opened() as file:
            return self._read_header(file)

    def check(self) -> int:
        """Read all of it, and return how many states it has."""
        return sum(1 for _ in self._all())

    def states(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the keys of a name, with the state of each."""
        return ((key, state) for of, key, state in self._all() if of == name)

    def _all(self) -> Iterator[tuple[str, str, bytes]]:
        number = 0
        with self._opened() as file:
            self._read_header(file)
            while (piece := self._decoded(file, _Piece)).name:
                number += len(piece.states)
                for key, state in piece.states:
                    yield piece.name, key, state
        if number != piece.number:
            raise self._bad(f"has {number} states instead of {piece.number}")

    def _opened(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise self._bad(f"cannot be read: {error.strerror}") from error

    def _read_header(self, file: BinaryIO) -> BackupHeader:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise self._bad("is not a backup of states")
        return self._decoded(file, BackupHeader)

    def _body(self, file: BinaryIO) -> bytes:
        start = file.read(_FRAME.size)
        if len(start) < _FRAME.size:
            raise self._bad("is truncated")
        length, check = _FRAME.unpack(start)
        body = file.read(length)
        if len(body) < length:
            raise self._bad("is truncated")
        if crc32(body) != check:
            raise self._bad("is damaged: its checksum does not match")
        return body

    def _decoded(self, file: BinaryIO, kind: type[_Decoded]) -> _Decoded:
        try:
            return msgspec.msgpack.decode(self._body(file), type=kind)
        except msgspec.MsgspecError as error:
            raise self._bad(f"cannot be read: {error}") from error

    def _bad(self, problem: str) -> BadFile:
        return BadFile(str(self.path), problem, _WAY_OUT)


def _framed(body: bytes) -> bytes:
    return _FRAME.pack(len(body), crc32(body)) + body

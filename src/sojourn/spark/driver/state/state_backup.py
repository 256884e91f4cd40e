"""The states of an application in one file, as a backup or to move them to another machine.

The file has a header with the forms of states by operator; then keys with their states, in
pieces that each have a checksum; and at the end the number of states. States are in the format
of hosts, with their reminders and expiry times.
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
    """The origin of the states in a backup."""

    application: str
    forms: dict[str, dict[str, Any]]
    """The form of states by operator, as recorded in the state folder."""
    batches: dict[str, int]
    """The committed batch of each part when the backup was made."""


class _Piece(msgspec.Struct, array_like=True, frozen=True):
    """A chunk of states under one name: an operator's own, its reminders or its expiry.

    The last piece has no name and no states.
    """

    name: str
    states: list[tuple[str, bytes]]
    number: int = 0
    """The number of all states, in the last piece."""


_encode = msgspec.msgpack.Encoder().encode
_Decoded = TypeVar("_Decoded")


def write_backup(
    path: Path, header: BackupHeader, states: Mapping[str, Iterable[tuple[str, bytes]]]
) -> int:
    """Write a backup, which replaces the file at *path*; return the number of its states."""
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
    """A backup in the file at *path*; reading raises `BadFile` if it is damaged."""

    path: Path

    def header(self) -> BackupHeader:
        """Return the application, the forms and the batches of its states."""
        with self._opened() as file:
            return self._read_header(file)

    def check(self) -> int:
        """Read and verify the whole file; return the number of its states."""
        return sum(1 for _ in self._all())

    def states(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the keys under a name, each with its state."""
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

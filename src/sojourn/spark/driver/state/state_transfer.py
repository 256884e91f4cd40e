"""Exports the states of an application to a file, and imports them.

The file has a header with the forms of states by operator; then keys with their states, in
pieces that each have a checksum; and at the end the number of states. States are in the format
of hosts, with their reminders and expiry times.

An import is atomic: the file is verified, then copied into the state folder. From then on it
is completed, by the next start if necessary. One transaction per part replaces the states of
its operators.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import msgspec

from sojourn.app.reminder import reminders_of
from sojourn.errors import BadFile, BadInput
from sojourn.files.durable_file import unwritable
from sojourn.files.private_files import FILE_MODE, sync_folder
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.key_states import KeyStates
from sojourn.spark.driver.state.state_form import StateForm
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.expiry import expiry_of

_PENDING = "import.states"
_MAGIC = b"sojourn states 1\n"
_FRAME = Struct("!II")  # the length of a piece, and its checksum
_AT_ONCE = 1000
_WAY_OUT = "use another file of `sojourn state --export FILE`"


class _Header(msgspec.Struct, frozen=True, kw_only=True):
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


@dataclass(frozen=True, slots=True)
class Transferred:
    operators: tuple[str, ...]
    entries: int
    """States, with reminders and expiry times."""


def export_states(folder: Path, path: Path) -> Transferred:
    """Write the states of all operators to the file at *path*; the application may be running.

    The states of a part are a consistent snapshot, as of its last commit.
    """
    states = KeyStates(folder)
    if not states.forms:
        raise BadInput(f"no operator of {states.application} keeps a state for each key")
    recorded = (states.checkpoints.form() or {})["states"]
    with ExitStack() as stack:
        moments = {part: stack.enter_context(states.moment(part)) for part in states.parts}
        header = _Header(
            application=states.application,
            forms={operator: recorded[operator] for operator in states.forms},
            batches={part: batch for part, (batch, _) in moments.items()},
        )
        found = {
            name: moments[states.part_of[operator]][1].states(name)
            for operator in states.forms
            for name in _names_of(operator)
        }
        return Transferred(tuple(states.forms), _write_backup(path, header, found))


def import_states(folder: Path, path: Path) -> Transferred:
    """Replace the states of all operators in the file at *path*, atomically.

    Raise `BadInput` if the application has no states of that form, and `EngineError` if it is
    running.
    """
    states, backup = KeyStates(folder), StateBackup(path)
    header = backup.header()
    for operator, written in header.forms.items():
        _check(states.form(operator), StateForm.read(written), operator)
    with StateLock(folder.absolute(), patience_s=0.0):
        finish_import(states.checkpoints)
        for part in {states.part_of[operator] for operator in header.forms}:
            if states.checkpoints.committed(part) < 0:
                raise BadInput(
                    f"{states.application} has not committed anything yet; run it once, then "
                    "import the states"
                )
        entries = backup.check()
        names = [name for operator in header.forms for name in _names_of(operator)]
        # the commit point: from now on the import is completed, by the next start if need be
        _write_backup(folder / _PENDING, header, {name: backup.states(name) for name in names})
        finish_import(states.checkpoints)
    return Transferred(tuple(header.forms), entries)


def finish_import(checkpoints: Checkpoints) -> bool:
    """Complete a pending import; return whether there was one.

    The caller must hold the lock of the state.
    """
    backup = StateBackup(checkpoints.folder / _PENDING)
    if not backup.path.exists():
        return False
    states = KeyStates(checkpoints.folder)
    operators = backup.header().forms
    for part in {states.part_of[operator] for operator in operators}:
        files = CutFiles(checkpoints.cuts(part))
        with closing(files):
            cut = files.load(files.last(checkpoints.committed(part)))
            files.replace_states(
                cut,
                {
                    name: backup.states(name)
                    for operator in operators
                    if states.part_of[operator] == part
                    for name in _names_of(operator)
                },
            )
    backup.path.unlink()
    return True


def _check(now: StateForm, written: StateForm, operator: str) -> None:
    """Raise `BadInput` if an operator of the form *now* cannot read states *written* so."""
    found = now.conflicts(written)
    unknown = [name for name in written.types if name not in now.types]
    found += [f"there is no field {name}" for name in unknown]
    if found:
        raise BadInput(
            f"the states of operator {operator} have another form: {'; '.join(found)}; import "
            "them into a version of the application that has it"
        )


def _names_of(operator: str) -> tuple[str, ...]:
    """Return the names of an operator's states, reminders and expiry in a host's store."""
    return operator, reminders_of(operator), expiry_of(operator)


@dataclass(frozen=True, slots=True)
class StateBackup:
    """A backup in the file at *path*; reading raises `BadFile` if it is damaged."""

    path: Path

    def header(self) -> _Header:
        """Return the application, the forms and the batches of its states."""
        with self._opened() as file:
            return self._read_header(file)

    def check(self) -> int:
        """Read and verify the whole file; return the number of its states."""
        return sum(1 for _ in self._all())

    def states(self, name: str) -> Iterator[tuple[str, bytes]]:
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

    def _read_header(self, file: BinaryIO) -> _Header:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise self._bad("is not a backup of states")
        return self._decoded(file, _Header)

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


def _write_backup(
    path: Path, header: _Header, states: Mapping[str, Iterable[tuple[str, bytes]]]
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


def _framed(body: bytes) -> bytes:
    return _FRAME.pack(len(body), crc32(body)) + body

"""The log of a host: all changes since the last committed cut, for the host that follows.

A change is written before it has an effect outside, but not synced: it survives the process,
not the machine. The changes of one decision are a group, which is there as a whole or not at
all. Each cut begins a new file. A host that follows another replays the files since the
committed cut, and continues with a file of its own. The header of that file says how many
groups of the previous file count: if the other host is still alive, later groups are ignored.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from mmap import mmap
from struct import Struct as Layout
from zlib import crc32

import msgspec

from sojourn.errors import DiskFull, EngineError
from sojourn.spark.host.batch.cut import CutId, OpenRecord
from sojourn.spark.host.batch.log_files import LogFiles
from sojourn.spark.host.state.part_clock import ClockReading
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult
from sojourn.spark.wire.repetitions import Provenance


class Took(msgspec.Struct, tag="t", array_like=True, frozen=True):
    """A root was taken from Spark."""

    root: Root
    provenance: Provenance | None = None


class Entered(msgspec.Struct, tag="e", array_like=True, frozen=True):
    """A record was opened."""

    record: OpenRecord


class Did(msgspec.Struct, tag="d", array_like=True, frozen=True):
    """The open record with this number is done."""

    number: int


class Leaving(msgspec.Struct, tag="l", array_like=True, frozen=True, gc=False):
    """A result or a dead letter leaves."""

    root: Root
    record: Record | None
    letter: DeadResult | None = None

    @property
    def size_bytes(self) -> int:
        result = self.record or self.letter
        return 0 if result is None else result.size_bytes


class Changed(msgspec.Struct, tag="s", array_like=True, frozen=True):
    """A key has a new state; an empty one means none."""

    operator: str
    key: str
    state: bytes


class Kept(msgspec.Struct, tag="k", array_like=True, frozen=True):
    """An operator keeps a broadcast record for processors that start later."""

    operator: str
    record: Record


class LogMark(msgspec.Struct, tag="m", array_like=True, frozen=True):
    """A cut was made here."""

    cut: CutId


class Committed(msgspec.Struct, tag="c", array_like=True, frozen=True):
    """Spark has committed the batch of a cut, so earlier entries are not needed any more."""

    cut: CutId


class Started(msgspec.Struct, tag="b", array_like=True, frozen=True):
    """A host resumes at this time, because no cut has it or the clock was in doubt."""

    clock: ClockReading


Entry = Took | Entered | Did | Leaving | Changed | Kept | LogMark | Committed | Started

_FRAME = Layout("!II")
_is_cut = frozenset([LogMark, Committed]).__contains__
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class _Header(msgspec.Struct, array_like=True, frozen=True):
    """The first frame of a file."""

    cut: CutId | None
    """The cut that the file begins with; None if it continues another file."""
    follows: int
    """Number of the previous file."""
    after: int
    """How many groups of the previous file count."""
    layout: str
    """Layout of the host that wrote it; a host with another layout cannot continue it."""


_decode_header = msgspec.msgpack.Decoder(_Header).decode


@dataclass(slots=True)
class _File:
    """A file of the log."""

    content: bytes | mmap
    groups: int
    """How many of its groups count."""

    def read(self) -> Iterator[list[Entry]]:
        """Yield the groups that count, lazily, because a log may be long."""
        yield from map(_decode, islice(_bodies(self.content), 1, 1 + self.groups))


class HostLog:
    """The log of a part, in *folder*, written by hosts with the same *layout*."""

    def __init__(self, folder: LogFiles, layout: str) -> None:
        self._folder, self._layout = folder, layout
        self._number, self._groups = 0, 0
        self._begins: dict[CutId, int] = {}  # the files that begin with a cut
        self._begun: bytes | None = None  # the header of a file for which there was no room
        self._unwritten: list[Entry] = []

    @property
    def is_own(self) -> bool:
        """Whether no other host has continued the log since this one did."""
        return self._number > 0 and self._folder.numbers()[-1:] == [self._number]

    def recover(self, base: CutId) -> Iterator[list[Entry]]:
        """Return the entries logged since a cut, in groups, and continue the log from there."""
        while True:
            there = self._folder.numbers()
            files = self._since(base, there)
            # Later files that are not in the chain are torn, or written by a host that was
            # given up. Earlier files belong to cuts that a start may still resume from.
            for number in there:
                if files and number > min(files) and number not in files:
                    self._folder.remove(number)
            # A new number, because another host may still be alive and write to its file.
            number = max([0, *there]) + 1
            follows = max(files, default=0)
            after = files[follows].groups if files else 0
            header = _Header(None if files else base, follows, after, self._layout)
            if self._create(number, _framed(_encode(header))):
                self._number, self._groups = number, 0
                self._begins = {base: min(files, default=number)}
                return _groups(files.values())

    def _create(self, number: int, header: bytes) -> bool:
        """Create a file, later if the disk is full; return False if it exists already."""
        self._begun = None
        try:
            return self._folder.create(number, header)
        except DiskFull:  # the caller is in the middle of a decision; `flush` retries
            self._begun = header
            return True

    def since(self, base: CutId) -> Iterator[list[Entry]]:
        return _groups(self._since(base, self._folder.numbers()).values())

    def append(self, entries: Iterable[Entry]) -> None:
        """Log a group. Raise `EngineError` if another host has continued the log.

        Raise `DiskFull` if there is no room: then `flush` writes the rest.
        """
        group = list(entries)
        if self._unwritten or self._begun is not None or any(map(_is_cut, map(type, group))):
            self._unwritten.extend(group)
            self.flush()
            return
        try:  # the usual case: this is called for every decision
            self._write(group)
        except DiskFull:
            self._unwritten = group
            raise

    def flush(self) -> None:
        """Write entries that had no room. Raise `DiskFull` if there still is none.

        A `LogMark` begins a new file; a `Committed` removes files once its group is written.
        """
        if self._begun is not None:
            self._own(self._folder.create(self._number, self._begun))
            self._begun = None
        while self._unwritten:
            if isinstance(first := self._unwritten[0], LogMark):
                self._begin(first.cut)
                del self._unwritten[0]
                continue
            marks = (n for n, entry in enumerate(self._unwritten) if isinstance(entry, LogMark))
            end = next(marks, len(self._unwritten))
            together = self._unwritten[:end]
            self._write([entry for entry in together if not isinstance(entry, Committed)])
            del self._unwritten[:end]
            for entry in together:
                if isinstance(entry, Committed):
                    self._shorten(entry.cut)

    def _write(self, group: list[Entry]) -> None:
        if group and self._number:
            self._folder.append(self._number, _framed(_encode(group)))
            self._groups += 1

    def _begin(self, cut: CutId) -> None:
        header = _Header(cut, self._number, self._groups, self._layout)
        self._own(self._folder.create(self._number + 1, _framed(_encode(header))))
        self._number, self._groups = self._number + 1, 0
        self._begins[cut] = self._number

    @staticmethod
    def _own(created: bool) -> None:  # noqa: FBT001 - whether it is a new file
        if not created:
            raise EngineError("another host has taken over its log; this one exits")

    def _shorten(self, cut: CutId) -> None:
        """Remove the files before the one that begins with a cut."""
        begins = self._begins.get(cut, 0)
        for number in self._folder.numbers():
            if number < begins:
                self._folder.remove(number)
        self._begins = {c: number for c, number in self._begins.items() if number >= begins}

    def _since(self, base: CutId, numbers: Iterable[int]) -> dict[int, _File]:
        """Return the files since a cut, by number; none if no chain of files begins with it.

        Each file is one link: its header names the previous file, and how much of it counts.
        """
        found: dict[int, _File] = {}
        for number in numbers:
            content = self._folder.read(number)
            header = _header(content)
            if header is None:
                continue  # lost in a power failure, or torn by a host that was given up
            if header.layout != self._layout:  # cannot be replayed, so the chain ends
                found = {}
            elif header.cut == base:
                found = _counted(number, content)
            elif found:
                last = max(found)
                before = found[last]
                # A power failure may have lost a file between them, or the end of the last.
                if header.follows != last or header.after > before.groups:
                    break
                before.groups = header.after
                file = _counted(number, content)
                found = found | file if file else {}
        return found


def _groups(files: Iterable[_File]) -> Iterator[list[Entry]]:
    return (group for file in files for group in file.read())


def _header(content: bytes | mmap) -> _Header | None:
    try:
        return _decode_header(next(_bodies(content)))
    except (StopIteration, msgspec.MsgspecError):
        return None


def _counted(number: int, content: bytes | mmap) -> dict[int, _File]:
    """Return a file with all its groups, by number; none if a group cannot be read."""
    try:
        groups = sum(1 for _ in map(_decode, islice(_bodies(content), 1, None)))
    except msgspec.MsgspecError:
        return {}
    return {number: _File(content, groups)}


def _framed(body: bytes) -> bytes:
    return _FRAME.pack(len(body), crc32(body)) + body


def _bodies(content: bytes | mmap) -> Iterator[bytes]:
    """Yield the complete frames; the last may be torn because its writer died."""
    start = 0
    while len(content) - start >= _FRAME.size:
        length, check = _FRAME.unpack_from(content, start)
        body = content[start + _FRAME.size : start + _FRAME.size + length]
        if len(body) < length or crc32(body) != check:
            return
        yield body
        start += _FRAME.size + length

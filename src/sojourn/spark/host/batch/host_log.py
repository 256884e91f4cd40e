"""The log of a host: what has happened since the last committed cut, for the host that follows.

What happens is written before it has an effect outside, but not synced: it survives the
process and not the machine. What happens together is one group, and is there as a whole or not
at all. The log begins a file at each cut. A host that follows another reads the files from the
committed cut on, continues with a file of its own, and says in it how much of the file before
it has read: what that other host, if it lives, adds later counts for nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from mmap import mmap
from struct import Struct as Layout
from typing import Protocol
from zlib import crc32

import msgspec

from sojourn.errors import DiskFull, EngineError
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.log_entries import Committed, Entry, Mark

__all__ = ["HostLog", "LogFolder"]

_FRAME = Layout("!II")
_is_cut = frozenset([Mark, Committed]).__contains__
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class LogFolder(Protocol):
    """Files by number."""

    def numbers(self) -> list[int]:
        """Return the numbers of the files, in order."""
        ...

    def create(self, number: int, content: bytes) -> bool:
        """Make a file that is complete when others see it; False if there is one already."""
        ...

    def append(self, number: int, content: bytes) -> None:
        """Write at the end of a file."""
        ...

    def read(self, number: int) -> bytes | mmap:
        """Return the content of a file, whatever becomes of it; nothing if it is gone."""
        ...

    def remove(self, number: int) -> None:
        """Remove a file, if it is there."""
        ...


class _Header(msgspec.Struct, array_like=True, frozen=True):
    """The first of a file: the *cut* that it begins with, or None if it only continues.

    Of the file that it *follows* so many groups, which is *after* them, count. *layout* tells
    what wrote it: another one cannot continue with it.
    """

    cut: CutId | None
    follows: int
    after: int
    layout: str


_decode_header = msgspec.msgpack.Decoder(_Header).decode


@dataclass(slots=True)
class _File:
    """A file of the log, of which so many *groups* count."""

    content: bytes | mmap
    groups: int

    def read(self) -> Iterator[list[Entry]]:
        """Yield the groups that count, one after the other: together they may be long."""
        yield from map(_decode, islice(_bodies(self.content), 1, 1 + self.groups))


class HostLog:
    """The log of a part, in *folder*, written by hosts with the same *layout*."""

    def __init__(self, folder: LogFolder, layout: str) -> None:
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
        """Return what was logged since a cut, by groups, and continue the log from there."""
        while True:
            there = self._folder.numbers()
            files = self._since(base, there)
            # what is before them is of cuts that a start may go back to
            for number in there:
                if files and number > min(files) and number not in files:
                    self._folder.remove(number)
            # never a number again that another host, if it lives, may write to
            number = max([0, *there]) + 1
            follows = max(files, default=0)
            after = files[follows].groups if files else 0
            header = _Header(None if files else base, follows, after, self._layout)
            if self._create(number, _framed(_encode(header))):
                self._number, self._groups = number, 0
                self._begins = {base: min(files, default=number)}
                return _groups(files.values())

    def _create(self, number: int, header: bytes) -> bool:
        """Make a file, as soon as there is room; False if there is one already."""
        self._begun = None
        try:
            return self._folder.create(number, header)
        except DiskFull:  # whoever recovers is in the middle of a decision
            self._begun = header
            return True

    def since(self, base: CutId) -> Iterator[list[Entry]]:
        """Return what was logged since a cut, by groups."""
        return _groups(self._since(base, self._folder.numbers()).values())

    def append(self, entries: Iterable[Entry]) -> None:
        """Log a group. Raise `EngineError` if another host has continued the log.

        Raise `DiskFull` if there is no room: then `flush` writes what is left of it.
        """
        group = list(entries)
        if self._unwritten or self._begun is not None or any(map(_is_cut, map(type, group))):
            self._unwritten.extend(group)
            self.flush()
            return
        try:  # most often: this is called for every decision
            self._write(group)
        except DiskFull:
            self._unwritten = group
            raise

    def flush(self) -> None:
        """Log what could not be logged yet. Raise `DiskFull` if there is still no room."""
        if self._begun is not None:
            self._own(self._folder.create(self._number, self._begun))
            self._begun = None
        while self._unwritten:
            if isinstance(first := self._unwritten[0], Mark):
                self._begin(first.cut)
                del self._unwritten[0]
                continue
            marks = (n for n, entry in enumerate(self._unwritten) if isinstance(entry, Mark))
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
        """Remove the files before a cut."""
        begins = self._begins.get(cut, 0)
        for number in self._folder.numbers():
            if number < begins:
                self._folder.remove(number)
        self._begins = {c: number for c, number in self._begins.items() if number >= begins}

    def _since(self, base: CutId, numbers: Iterable[int]) -> dict[int, _File]:
        """Return the files since a cut, by number; none if that is not known."""
        found: dict[int, _File] = {}
        for number in numbers:
            content = self._folder.read(number)
            header = _header(content)
            if header is None:
                continue  # lost with the machine, or written by a host that was thought dead
            if header.layout != self._layout:
                found = {}
            elif header.cut == base:
                found = _counted(number, content)
            elif found:
                last = max(found)
                before = found[last]
                # one between them, or the end of the last, may be lost with the machine
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
    """Return a file with all its groups, by number; none if one of them cannot be read."""
    try:
        groups = sum(1 for _ in map(_decode, islice(_bodies(content), 1, None)))
    except msgspec.MsgspecError:
        return {}
    return {number: _File(content, groups)}


def _framed(body: bytes) -> bytes:
    return _FRAME.pack(len(body), crc32(body)) + body


def _bodies(content: bytes | mmap) -> Iterator[bytes]:
    """Yield what is complete; the rest was torn off when its writer died."""
    start = 0
    while len(content) - start >= _FRAME.size:
        length, check = _FRAME.unpack_from(content, start)
        body = content[start + _FRAME.size : start + _FRAME.size + length]
        if len(body) < length or crc32(body) != check:
            return
        yield body
        start += _FRAME.size + length

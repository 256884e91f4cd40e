"""Reading and following the logs of operators."""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import BinaryIO, Self

from sojourn.errors import BadFile
from sojourn.escaped import escaped
from sojourn.service.log_times import Clocks, LogLine

__all__ = ["Logs", "Tail", "log_files"]

_BLOCK = 1 << 16


def log_files(folder: Path) -> dict[str, Path]:
    """Return the logs in *folder*, by operator."""
    return {path.stem: path for path in sorted(folder.glob("*.log")) if path.is_file()}


class Logs:
    """The lines of the logs in *folder*, or of one *operator*, from the last *lines* of each.

    A log that appears later is read from its beginning.
    """

    def __init__(self, folder: Path, operator: str | None, lines: int | None) -> None:
        self._folder, self._operator, self._lines = folder, operator, lines
        self._there = log_files(folder)
        self._tails: dict[str, Tail] = {}
        self._clocks, self._timed = Clocks(), set[str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for tail in self._tails.values():
            tail.close()

    @property
    def untimed(self) -> list[str]:
        """Operators whose lines have no time."""
        return [name for name in self._tails if name not in self._timed]

    def new(self, *, unfinished: bool = False) -> Iterator[LogLine]:
        """Yield the lines that are new since the last call, sorted by time."""
        for name, path in log_files(self._folder).items():
            if self._operator in (None, name) and name not in self._tails:
                self._tails[name] = Tail(path, self._lines if name in self._there else None)
        new = {name: tail.new(unfinished=unfinished) for name, tail in self._tails.items()}
        for line in self._clocks.merged(new):
            if line.at_s > -inf:
                self._timed.add(line.operator)
            yield line


class Tail:
    """Follows a file, from its last *lines* on, or from its beginning if None.

    A file that was truncated or replaced is read from its beginning.
    """

    def __init__(self, path: Path, lines: int | None) -> None:
        self._path = path
        self._file = _opened(path)
        self._rest = b""
        if lines is not None:
            self._file.seek(_start_of_last(self._file, lines))

    def new(self, *, unfinished: bool = False) -> Iterator[str]:
        """Yield the lines that are new since the last call, escaped for a terminal.

        A line without its newline is left for later, unless *unfinished*.
        """
        self._reopen_if_replaced()
        while block := self._file.read(_BLOCK):
            *whole, self._rest = (self._rest + block).split(b"\n")
            yield from map(_text, whole)
        if unfinished and self._rest:
            yield _text(self._rest)
            self._rest = b""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _reopen_if_replaced(self) -> None:
        with suppress(FileNotFoundError):
            there, here = self._path.stat(), os.fstat(self._file.fileno())
            if there.st_ino != here.st_ino:
                self._file.close()
                self._file, self._rest = _opened(self._path), b""
            elif there.st_size < self._file.tell():
                self._file.seek(0)
                self._rest = b""


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be read: {error.strerror}", "check its permissions"
        ) from error


def _start_of_last(file: BinaryIO, lines: int) -> int:
    """Return the offset of the last *lines* whole lines, reading from the end."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    ends = file.read(1) == b"\n"  # the last line has its newline
    at, wanted = end, lines + ends
    if not wanted:
        return end
    while at > 0:
        size = min(_BLOCK, at)
        at -= size
        file.seek(at)
        block = file.read(size)
        newlines = block.count(b"\n")
        if newlines >= wanted:
            place = len(block)
            for _ in range(wanted):
                place = block.rindex(b"\n", 0, place)
            return at + place + 1
        wanted -= newlines
    return 0


def _text(line: bytes) -> str:
    return escaped(line.decode(errors="backslashreplace").rstrip("\r").expandtabs())

"""The logs of operators: finding them, also on nodes, reading and following them."""

import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import BinaryIO, Self

from sojourn.engine import NodeHealth
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.text import escaped, shown

_BLOCK = 1 << 16
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class LogLine:
    operator: str
    text: str
    at_s: float
    """Its time, or of the last line before it that has one; -inf if there is none."""


def log_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.log")) if path.is_file()}


class Logs:
    """The lines of the logs in *folder*, or of one *operator*, from the last *lines* of each.

    A log that appears later is read from its beginning.
    """

    def __init__(self, folder: Path, operator: str | None, lines: int | None) -> None:
        self._folder, self._operator, self._lines = folder, operator, lines
        self._there = log_files(folder)
        self._tails: dict[str, Tail] = {}
        self._last_s: dict[str, float] = {}  # a line without a time gets the last one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for tail in self._tails.values():
            tail.close()

    @property
    def untimed(self) -> list[str]:
        """Operators whose lines have no timestamps."""
        return [name for name in self._tails if self._last_s.get(name, -inf) == -inf]

    def new(self, *, unfinished: bool = False) -> list[LogLine]:
        """Return the lines since the last call, sorted by time."""
        for name, path in log_files(self._folder).items():
            if self._operator in (None, name) and name not in self._tails:
                self._tails[name] = Tail(path, self._lines if name in self._there else None)
        new = []
        for name, tail in self._tails.items():
            for text in tail.new(unfinished=unfinished):
                at_s = time_s(text)
                self._last_s[name] = self._last_s.get(name, -inf) if at_s is None else at_s
                new.append(LogLine(name, text, self._last_s[name]))
        return sorted(new, key=lambda line: line.at_s)


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
        """Yield the new lines, escaped; one without its newline only if *unfinished*."""
        self._reopen_if_replaced()
        while block := self._file.read(_BLOCK):
            *whole, self._rest = (self._rest + block).split(b"\n")
            yield from map(_text, whole)
        if unfinished and self._rest:
            yield _text(self._rest)
            self._rest = b""

    def close(self) -> None:
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
    """Return the offset of the last *lines* whole lines, reading blocks from the end."""
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


def time_s(line: str) -> float | None:
    """Return the time at the beginning of *line*, in UTC unless it has a time zone.

    >>> time_s("1970-01-01T00:01:00.500Z hello"), time_s("hello")
    (60.5, None)
    """
    found = _STAMP.match(line)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found[0].replace(",", "."))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _text(line: bytes) -> str:
    return escaped(line.decode(errors="backslashreplace").rstrip("\r").expandtabs())


def node_logs(nodes: Sequence[NodeHealth], name: str) -> Path:
    """Return the folder with the logs of the node *name*, if it is on this machine.

    Raise `BadInput` if there is no such node, and `EngineError` with machine and folder if they
    are on another machine.
    """
    node = next((node for node in nodes if node.name == name), None)
    if node is None:
        names = ", ".join(node.name for node in nodes)
        known = f"there are: {names}" if names else "it runs on one machine: leave out --node"
        raise BadInput(f"there is no node {shown(name)}; {known}")
    if not node.logs:
        raise EngineError(
            f"{name} has not reported the folder of its logs; {node.reason or 'try again'}"
        )
    folder = Path(node.logs)
    # a container may have the same path, and machines may have the same name
    if node.machine != socket.gethostname() or not folder.is_dir():
        raise EngineError(
            f"the logs of {name} are on {node.machine}, in {folder}; read them there"
        )
    return folder


def node_logs_hint(nodes: Sequence[NodeHealth]) -> str:
    """Return a hint on how to read the logs of *nodes*; empty on one machine."""
    names = [node.name for node in nodes if node.logs]
    if not names:
        return ""
    return f"the output of functions is on the nodes: add --node {' or '.join(names)}"

"""The log of an operator: whole lines, each with the time."""

import io
import os
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from time import time

__all__ = ["StampedLines", "log", "stamp"]

# What never ends with a newline is written all the same.
_LONGEST_LINE = 1 << 16


def stamp(text: str, now_s: float) -> str:
    r"""Return the lines of *text*, each with the time in UTC.

    >>> print(stamp("one\ntwo", 1.5), end="")
    1970-01-01T00:00:01.500Z one
    1970-01-01T00:00:01.500Z two
    """
    at = datetime.fromtimestamp(now_s, UTC).replace(tzinfo=None)
    prefix = at.isoformat(timespec="milliseconds")
    return "".join(f"{prefix}Z {line}\n" for line in text.split("\n"))


def log(text: str) -> None:
    """Write to the log of hosts, which is standard error; a full disk does not stop a host."""
    with suppress(OSError):
        sys.stderr.write(stamp(text, time()))
        sys.stderr.flush()


class StampedLines(io.TextIOBase):
    """A standard output: whole lines, each with the time and in one piece.

    The file is shared with other processes, which also append to it. A log that cannot be
    written must not make a record fail.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor, self._rest = descriptor, ""
        self._lock = threading.Lock()
        self.buffer = io.FileIO(descriptor, "wb", closefd=False)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What text is written in."""
        return "utf-8"

    def fileno(self) -> int:
        """Return where it is written to."""
        return self._descriptor

    def reconfigure(self, **_: object) -> None:
        """Stay as it is, whatever a function asks of its standard output."""

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, text: str, /) -> int:
        """Write the lines that *text* completes."""
        with self._lock:
            lines, newline, self._rest = (self._rest + text).rpartition("\n")
            if len(self._rest) > _LONGEST_LINE:
                lines, newline, self._rest = lines + newline + self._rest, "\n", ""
            if newline:
                self._written(lines)
        return len(text)

    def end(self) -> None:
        """Write a line that was begun."""
        with self._lock:
            if self._rest:
                self._written(self._rest)
            self._rest = ""

    def _written(self, lines: str) -> None:
        now_s = datetime.now(UTC).timestamp()
        with suppress(OSError):
            os.write(self._descriptor, stamp(lines, now_s).encode(errors="backslashreplace"))

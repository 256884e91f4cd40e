"""The log of an operator: lines with the time, in a file that is cut when it gets long."""

import io
import os
import shutil
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["StampedLines", "cut", "is_long", "stamp"]

# What user code prints is kept up to here, and once more as much of what came before.
_MOST_BYTES = 10 << 20

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


def is_long(log: Path) -> bool:
    """Return whether it is time to cut a log."""
    try:
        return log.stat().st_size > _MOST_BYTES
    except OSError:  # somebody has removed it
        return False


def cut(log: Path) -> None:
    """Put aside what is in *log*, and let it begin anew.

    Those who write to it go on: they append. What is written at this very moment may be lost.
    """
    copy = log.with_suffix(".log.2")
    with suppress(OSError):  # a full disk: it grows on
        shutil.copyfile(log, copy)
        copy.replace(log.with_suffix(".log.1"))
        os.truncate(log, 0)

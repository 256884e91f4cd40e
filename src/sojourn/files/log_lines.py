"""Log lines with timestamps."""

import io
import os
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from time import time

__all__ = ["StampedLines", "log", "stamp"]

# Longer text is written without waiting for its newline.
_LONGEST_LINE = 1 << 16


def stamp(text: str, now_s: float) -> str:
    r"""Return the lines of *text*, each with a timestamp in UTC.

    >>> print(stamp("one\ntwo", 1.5), end="")
    1970-01-01T00:00:01.500Z one
    1970-01-01T00:00:01.500Z two
    """
    at = datetime.fromtimestamp(now_s, UTC).replace(tzinfo=None)
    prefix = at.isoformat(timespec="milliseconds")
    return "".join(f"{prefix}Z {line}\n" for line in text.split("\n"))


def log(text: str) -> None:
    """Write to the log of a host, its standard error; a full disk does not stop the host."""
    with suppress(OSError):
        sys.stderr.write(stamp(text, time()))
        sys.stderr.flush()


class StampedLines(io.TextIOBase):
    """A standard output that writes whole lines with timestamps, each in one call.

    Other processes append to the same file, so partial lines would be mixed up. Write errors
    are ignored, because they must not make a record fail.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor, self._rest = descriptor, ""
        self._lock = threading.Lock()
        self.buffer = io.FileIO(descriptor, "wb", closefd=False)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the output, which is always UTF-8."""
        return "utf-8"

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def reconfigure(self, **_: object) -> None:
        """Accept and ignore settings, as user code may call this on its standard output."""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str, /) -> int:
        """Write the lines that *text* completes, and buffer the rest."""
        with self._lock:
            lines, newline, self._rest = (self._rest + text).rpartition("\n")
            if len(self._rest) > _LONGEST_LINE:
                lines, newline, self._rest = lines + newline + self._rest, "\n", ""
            if newline:
                self._written(lines)
        return len(text)

    def end(self) -> None:
        """Write the incomplete last line."""
        with self._lock:
            if self._rest:
                self._written(self._rest)
            self._rest = ""

    def _written(self, lines: str) -> None:
        now_s = datetime.now(UTC).timestamp()
        with suppress(OSError):
            os.write(self._descriptor, stamp(lines, now_s).encode(errors="backslashreplace"))

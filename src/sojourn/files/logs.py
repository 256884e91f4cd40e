"""Logs: lines with timestamps, and rotation while processes append to them."""

import io
import os
import shutil
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Self

from sojourn.files.private_files import append_to

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
        return self._descriptor

    def reconfigure(self, **_: object) -> None:
        """Accept and ignore settings, as user code may call this on its standard output."""

    def writable(self) -> bool:
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


class LogRotation:
    """Rotates the logs in *folder* whose names match *named*, every *every_s* while entered.

    A log larger than *most_bytes* is copied to `NAME.1`, which replaces the previous copy, and
    truncated. Writers need not reopen it, because they have it open for appending.
    """

    def __init__(
        self,
        folder: Path,
        named: str = "*.log",
        *,
        most_bytes: int = 10 << 20,
        every_s: float = 5.0,
    ) -> None:
        self._folder, self._named = folder, named
        self._most_bytes, self._every_s = most_bytes, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self.rotate()
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def rotate(self) -> None:
        """Rotate the logs that are too large now."""
        for log in self._folder.glob(self._named):
            with suppress(OSError):  # it may be gone
                if log.stat().st_size > self._most_bytes:
                    _put_aside(log)

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            self.rotate()


def _put_aside(log: Path) -> None:
    aside = log.with_name(f"{log.name}.1")
    try:
        aside.unlink(missing_ok=True)
        with log.open("rb") as source, append_to(aside) as copy:
            shutil.copyfileobj(source, copy)
    except OSError:
        aside.unlink(missing_ok=True)  # on a full disk, space matters more than old lines
    finally:
        os.truncate(log, 0)

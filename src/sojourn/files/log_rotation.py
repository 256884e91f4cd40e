"""Rotation of log files while processes append to them."""

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from sojourn.files.private_files import append_to

__all__ = ["LogRotation"]


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

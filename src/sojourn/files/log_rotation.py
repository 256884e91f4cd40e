"""Logs that do not grow for ever: what is long is put aside while others go on writing."""

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from sojourn.files.private_files import append_to

__all__ = ["LogRotation"]


class LogRotation:
    """Looks after the logs in *folder* whose names match *named*, while it is entered.

    One that has grown beyond *most_bytes* is copied, over the copy before, and emptied. Those
    that write to it have it open for appending, and need not know.
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
        """Put aside what is too long now."""
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
        aside.unlink(missing_ok=True)  # a disk that is full needs room more than old lines
    finally:
        os.truncate(log, 0)

"""The lock of a state: one run uses it at a time, with all processes of that run.

The lock belongs to an open file, which Java and the broker inherit. It is free only when the
last of them has ended. If a driver is killed, Java survives it briefly and may still commit;
the next start waits for the lock.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from sojourn.errors import EngineError
from sojourn.files.file_lock import FileLock
from sojourn.files.file_system import require_local_disk
from sojourn.files.private_files import claim_folder

_NAME = "engine.lock"
_LOOK_S = 0.1


class StateLock:
    """A context manager that holds the lock of the state in *folder*.

    Entering raises `BadFile` if other users have access to the folder or it is on a network
    file system. It raises `EngineError` if another run uses the state, or if processes of a
    killed run do not end within *patience_s*. *progress* receives a line if it has to wait.
    """

    def __init__(
        self,
        folder: Path,
        progress: Callable[[str], None] = lambda _line: None,
        *,
        patience_s: float = 90.0,
    ) -> None:
        self._folder, self._progress, self._patience_s = folder, progress, patience_s
        self._lock = FileLock(folder / _NAME)

    @property
    def file(self) -> int:
        """The open file; processes that inherit it hold the lock too."""
        return self._lock.file

    def __enter__(self) -> Self:
        try:
            require_local_disk(self._folder)
            claim_folder(self._folder)
            self._take()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._lock.release()

    def _take(self) -> None:
        until_s, told = time.monotonic() + self._patience_s, False
        # with the start time, because process ids are reused
        us = json.dumps({"pid": os.getpid(), "since": psutil.Process().create_time()})
        while not self._lock.take(us):
            holder = self._holder()
            if holder is not None and _runs(*holder):
                raise EngineError(
                    f"another process uses the state folder {self._folder} "
                    f"(pid {holder[0]}); stop it first, or use another state folder"
                )
            if not told:
                told = True
                self._progress("waiting for Java and Kafka of the previous run to exit")
            if time.monotonic() > until_s:
                raise EngineError(
                    f"processes of a previous run still use the state folder {self._folder} "
                    f"(pid {_users(self._lock.path)}); end them first, or use another state "
                    "folder"
                )
            time.sleep(_LOOK_S)

    def _holder(self) -> tuple[int, float] | None:
        """Return the process id of the driver that took the lock, and its start time."""
        try:
            told = json.loads(self._lock.holder())
            return int(told["pid"]), float(told["since"])
        except (ValueError, KeyError, TypeError):
            return None  # the driver is just writing it


def _runs(pid: int, since_s: float) -> bool:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and abs(process.create_time() - since_s) < 1.0
    return False


def _users(path: Path) -> str:
    """Return the ids of other processes that have a file open, as text."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and str(path.resolve()) in {
                file.path for file in process.open_files()
            }:
                found.append(str(process.pid))
    return ", ".join(found) or "unknown"

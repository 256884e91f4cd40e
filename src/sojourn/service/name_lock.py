"""The claim of a run on its name: lock, socket and token in a private folder."""

import json
import os
import secrets
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from sojourn.app.checks import check_name
from sojourn.errors import BadFile
from sojourn.files.file_lock import FileLock
from sojourn.service.folders import ENDED, ENTRY, TOKEN, Entry, places, private_folder

FAILED, INTERRUPTED = 1, 130
"""Exit status if the application failed, and after a second Ctrl-C."""

_SOCKET, _LOCK, _SHORT = "control.sock", "lock", "sojourn-"
# the size of sun_path, without the terminating NUL
_LONGEST = 107


class NameLock:
    """Holds the name of an application while it runs.

    The lock ends with the process, however it ends; files of a dead process are removed.
    *exit_status* is written for the command that waits for the end. Raise `EngineError` on
    entering if the application is already running.
    """

    exit_status = FAILED

    def __init__(self, name: str, *, address: str, state: Path, logs: Path) -> None:
        check_name("name", name)
        self._name, self._address, self._state, self._logs = name, address, state, logs

    def __enter__(self) -> Self:
        place = private_folder(places()[0])
        self.folder = private_folder(place / self._name)
        self._lock = FileLock(self.folder / _LOCK)
        self._lock.take_or_refuse(
            f"{self._name} is already running",
            f"`sojourn stop --app {self._name}` stops it; or give the application another name",
        )
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_exception: object) -> None:
        status = INTERRUPTED if kind is KeyboardInterrupt else self.exit_status
        with suppress(OSError):  # a full disk
            ended = {"pid": os.getpid(), "exit_status": status}
            (self.folder / ENDED).write_text(json.dumps(ended), encoding="utf-8")
        self._clean()
        self._lock.release()

    def _open(self) -> None:
        self._clean()
        (self.folder / ENDED).unlink(missing_ok=True)
        self.socket = self._short_enough(self.folder / _SOCKET)
        self.token = secrets.token_hex(32)
        exclusive = os.O_CREAT | os.O_WRONLY | os.O_EXCL
        with os.fdopen(os.open(self.folder / TOKEN, exclusive, 0o600), "w") as file:
            file.write(self.token)
        Entry(
            name=self._name,
            pid=os.getpid(),
            address=self._address,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            socket=str(self.socket),
            state=str(self._state.absolute()),
            logs=str(self._logs.absolute()),
        ).write(self.folder)

    def _clean(self) -> None:
        """Remove the files of this or a dead process, and a socket in another folder."""
        with suppress(BadFile):
            beside = Path(Entry.read(self.folder).socket).parent
            if beside != self.folder:
                (beside / _SOCKET).unlink(missing_ok=True)
                with suppress(OSError):
                    beside.rmdir()
        for left in (ENTRY, f"{ENTRY}.new", TOKEN, _SOCKET):
            (self.folder / left).unlink(missing_ok=True)

    @staticmethod
    def _short_enough(socket: Path) -> Path:
        if len(os.fsencode(socket)) <= _LONGEST:
            return socket
        folder = Path(tempfile.mkdtemp(prefix=_SHORT))  # with mode 0700
        short = folder / _SOCKET
        if len(os.fsencode(short)) > _LONGEST:
            folder.rmdir()
            raise BadFile(
                str(short),
                f"is longer than {_LONGEST} bytes, the limit for a Unix socket",
                "set TMPDIR or XDG_RUNTIME_DIR to a folder with a shorter path",
            )
        return short

"""The folder in which an application keeps what the next start goes on with."""

import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from sojourn.durable_file import write_durably
from sojourn.errors import BadFile, EngineError
from sojourn.service.lock import take

__all__ = ["StateFolder"]

_MARK, _LOCK = "run.json", "lock"
# which the engine writes; a state may have been made without this command
_MARK_OF_ENGINE, _LOCK_OF_ENGINE = "application.json", "engine.lock"


class StateFolder:
    """The state of the application *name* on *engine* at *path*, for one run at a time.

    Raise on entering: `BadFile` where the folder is something else, `EngineError` where
    another run uses it.
    """

    def __init__(self, path: Path, name: str, engine: str = "spark") -> None:
        self.path, self._name, self._engine = path, name, engine
        self.logs, self.history = path / "logs", path / "history"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_ours()
        except OSError as error:
            problem = f"cannot be used: {error.strerror}"
            raise BadFile(str(self.path), problem, "name another with --state") from error
        self._lock = take(
            self.path / _LOCK,
            f"{self.path} is the state of a run that goes on, pid {{pid}}; "
            "end that one first, or name another folder with --state",
        )
        mark = {"application": self._name, "engine": self._engine}
        write_durably(self.path / _MARK, json.dumps(mark).encode(), mode=0o600)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def forget(self) -> None:
        """Remove all that a start would go on with; the history stays.

        Locks stay too: whoever waits for a file that is gone would not keep others out.
        """
        kept = {_MARK, _LOCK, _LOCK_OF_ENGINE}
        for found in self.path.iterdir():
            if found.name in kept or found.name.startswith(self.history.name):
                continue
            try:
                shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else (
                    found.unlink()
                )
            except OSError as error:
                raise EngineError(f"{found} cannot be removed: {error.strerror}") from error

    def _check_ours(self) -> None:
        """Check that whatever is here was written by a run of the same name."""
        marks = [self.path / name for name in (_MARK, _MARK_OF_ENGINE)]
        mark = next((mark for mark in marks if mark.exists()), None)
        if mark is None:
            names = {found.name for found in self.path.iterdir()}
            # an engine that failed to start leaves its lock, and logs
            if names - {_LOCK} and _LOCK_OF_ENGINE not in names:
                raise BadFile(
                    str(self.path),
                    "is not empty, and not the state of an application",
                    "name another folder with --state",
                )
            return
        try:
            told = json.loads(mark.read_text(encoding="utf-8"))
            name, engine = told["application"], told.get("engine", "spark")
        except (ValueError, KeyError, TypeError) as error:
            problem, way_out = "is not what sojourn writes", "name another folder with --state"
            raise BadFile(str(mark), problem, way_out) from error
        if (name, engine) != (self._name, self._engine):
            both = (engine, self._engine) if engine != self._engine else ("", "")
            on, here = (f" on {which}" if which else "" for which in both)
            raise BadFile(
                str(self.path),
                f"is the state of {name}{on}, and this is {self._name}{here}",
                "name another folder with --state",
            )

"""The state folder of an application: checkpoints to resume from, its history and its logs."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.files.durable_file import write_durably
from sojourn.files.file_lock import FileLock
from sojourn.files.file_system import require_local_disk
from sojourn.files.private_files import claim_folder
from sojourn.service.control import ask
from sojourn.service.folders import Entry, only, running, state_folder
from sojourn.text import shown

_MARK, _LOCK = "run.json", "lock"
# written by the engine, which may have run without this command
_MARK_OF_ENGINE, _LOCK_OF_ENGINE = "application.json", "engine.lock"


class StateFolder:
    """The state folder of the application *name* on *engine*, for one run at a time.

    Raise on entering: `BadFile` if the folder has other content, other users have access to it
    or it is on a network file system; `EngineError` if another run uses it.
    """

    def __init__(self, path: Path, name: str, engine: str = "spark") -> None:
        self.path, self._name, self._engine = path, name, engine
        self.logs, self.history = path / "logs", path / "history"
        self._lock = FileLock(path / _LOCK)

    def __enter__(self) -> Self:
        require_local_disk(self.path)
        claim_folder(self.path)
        try:
            self._check_ours()
        except OSError as error:
            problem = f"cannot be used: {error.strerror}"
            raise BadFile(str(self.path), problem, "choose another with --state") from error
        self._lock.take_or_refuse(
            f"{self.path} is used by another run",
            "stop that one first, or choose another folder with --state",
        )
        mark = {"application": self._name, "engine": self._engine}
        write_durably(self.path / _MARK, json.dumps(mark).encode())
        return self

    def __exit__(self, *_exception: object) -> None:
        self._lock.release()

    def forget(self) -> None:
        """Delete all but the history and the locks: a deleted lock would exclude no run."""
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
        """Check that the folder is empty, or of the same application and engine."""
        marks = [self.path / name for name in (_MARK, _MARK_OF_ENGINE)]
        mark = next((mark for mark in marks if mark.exists()), None)
        if mark is None:
            names = {found.name for found in self.path.iterdir()}
            # an engine that failed to start leaves its lock and logs
            if names - {_LOCK} and _LOCK_OF_ENGINE not in names:
                raise BadFile(
                    str(self.path),
                    "is not empty, and not a state folder",
                    "choose another folder with --state",
                )
            return
        try:
            told = json.loads(mark.read_text(encoding="utf-8"))
            name, engine = told["application"], told.get("engine", "spark")
        except (ValueError, KeyError, TypeError) as error:
            problem, way_out = "is not a file of sojourn", "choose another folder with --state"
            raise BadFile(str(mark), problem, way_out) from error
        if (name, engine) != (self._name, self._engine):
            both = (engine, self._engine) if engine != self._engine else ("", "")
            on, here = (f" on {which}" if which else "" for which in both)
            raise BadFile(
                str(self.path),
                f"is the state of {name}{on}, not of {self._name}{here}",
                "choose another folder with --state",
            )


def known_applications() -> list[str]:
    """Return running applications, and those with a state folder in the default place."""
    return list(dict.fromkeys([*running(), *_stopped()]))


def find_in_state(name: str, app: str | None = None) -> Path:
    """Return the file or folder *name* in the state folder of *app*, running or not.

    Without *app* it is the running application, or else the one that ran last. Raise
    `BadInput` if there is none, or several run.
    """
    if (runs := _running(app)) is not None:
        return Path(runs[1].state) / name
    stopped = {of: folder for of, folder in _stopped().items() if (folder / name).exists()}
    if app is None:
        if not stopped:
            raise BadInput("no application has run on this machine; `sojourn run` starts one")
        return max(stopped.values(), key=_last_used_s) / name
    # the folder of an application on another engine than Spark is NAME.ENGINE
    own = {of: folder for of, folder in stopped.items() if app in (of, of.rpartition(".")[0])}
    if not own:
        known = ", ".join(dict.fromkeys([*running(), *stopped])) or "none"
        raise BadInput(
            f"there is no {name} of an application {shown(app)}; known applications: {known}. "
            "If it was started with --state or --history, name that folder or file"
        )
    return own.get(app, max(own.values(), key=_last_used_s)) / name


def find_history(app: str | None = None) -> Path:
    """Return the history of *app*, by default of the application that runs or ran last.

    Raise `BadInput` if there is none, or several run.
    """
    if (runs := _running(app)) is not None:
        folder, entry = runs
        try:
            path = ask(folder, entry, {"ask": "status"}).get("history")
        except EngineError:  # it is starting, or busy
            path = None
        return Path(path) if path else Path(entry.state) / "history"
    return find_in_state("history", app)


def _running(app: str | None) -> tuple[Path, Entry] | None:
    runs = running()
    return only(runs) if runs and app is None else runs.get(app or "")


def _stopped() -> dict[str, Path]:
    """Return the state folders in the default place, by application."""
    return {path.name: path for path in sorted(state_folder("").glob("*")) if path.is_dir()}


def _last_used_s(folder: Path) -> float:
    return max(path.stat().st_mtime for path in folder.iterdir())


class LastAllocation:
    """The last allocation of the application with the state folder *state*.

    *failure* is why the current allocation could not be saved; "" if it is saved.
    """

    def __init__(self, state: Path) -> None:
        self._file = state / "allocation.json"
        self._saved: Mapping[str, int] | None = None
        self.failure = ""

    def read(self) -> dict[str, int]:
        """Return the allocation that was saved last, without invalid numbers."""
        try:
            told = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}  # not worth an error: the loop soon finds an allocation
        return {
            name: processors
            for name, processors in (told.items() if isinstance(told, dict) else ())
            if isinstance(processors, int) and processors > 0
        }

    def save(self, allocation: Mapping[str, int]) -> None:
        """Save *allocation* durably, if it has changed; set `failure` if that fails."""
        if allocation != self._saved:
            try:
                write_durably(self._file, json.dumps(dict(allocation)).encode())
            except EngineError as error:
                self.failure = str(error)
                return
            self._saved = dict(allocation)
        self.failure = ""

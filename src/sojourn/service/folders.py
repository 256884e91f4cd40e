"""Private folders of running applications, and their entries by which commands find them."""

import json
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.files.durable_file import write_durably
from sojourn.text import shown

ENTRY, TOKEN, ENDED = "running.json", "token", "ended.json"
"""Files beside the socket."""

_PATIENCE_S = 2.0


def places() -> tuple[Path, ...]:
    """Return the places of folders of running applications; new applications use the first.

    There are several because the environment of a command and of the application may differ.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    kept = _kept() / "run"
    return (Path(runtime) / "sojourn", kept) if runtime and Path(runtime).is_dir() else (kept,)


def state_folder(name: str, engine: str = "spark") -> Path:
    return _kept() / "state" / (name if engine == "spark" else f"{name}.{engine}")


def database_folder() -> Path:
    return _kept() / "databases"


def cluster_folder() -> Path:
    return _kept() / "cluster"


def private_folder(path: Path) -> Path:
    """Return the folder with mode 0700, created if it is missing.

    Raise `BadFile` if it cannot be created, or other users have access.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.lstat().st_uid == os.getuid() and not path.is_symlink():
            path.chmod(0o700)
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be created: {error.strerror}", "set XDG_STATE_HOME to a folder"
        ) from error
    refuse_others(path)
    return path


def refuse_others(path: Path) -> None:
    """Raise `BadFile` unless only this user has access to the file or folder."""
    try:
        found = path.lstat()
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be read: {error.strerror}", "check its owner"
        ) from error
    if stat.S_ISLNK(found.st_mode):
        raise BadFile(str(path), "is a symbolic link", "remove it")
    if found.st_uid != os.getuid():
        raise BadFile(str(path), f"belongs to user {found.st_uid}", "remove it")
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        right = "0700" if stat.S_ISDIR(found.st_mode) else "0600"
        raise BadFile(
            str(path),
            f"is accessible to other users (mode {mode})",
            f"set its mode to {right}, and restart the application",
        )


def _kept() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "sojourn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A running application: process, control socket, and folders of state and logs."""

    name: str
    pid: int
    address: str
    started_at: str
    socket: str
    state: str
    logs: str

    def write(self, folder: Path) -> None:
        write_durably(folder / ENTRY, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the entry in *folder*. Raise `BadFile` if it cannot be read."""
        path = folder / ENTRY
        refuse_others(folder)
        refuse_others(path)
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise BadFile(
                str(path), f"does not describe a running application: {error}", "remove it"
            ) from error

    def holds(self, folder: Path) -> bool:
        """Return whether its process is alive and has not released its name in *folder*."""
        try:
            os.kill(self.pid, 0)
        except OSError:  # no such process, or one of another user with the same id
            return False
        try:
            return Entry.read(folder).pid == self.pid
        except BadFile:
            return False

    def answers(self, patience_s: float = _PATIENCE_S) -> bool:
        """Return whether a process listens on its socket, even if it is busy."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(patience_s)
            try:
                connection.connect(self.socket)
            except (TimeoutError, BlockingIOError):
                return True  # busy, so it runs
            except OSError:
                return False
        return True


def running() -> dict[str, tuple[Path, Entry]]:
    """Return the running applications of this user, with their folders, by name."""
    found: dict[str, tuple[Path, Entry]] = {}
    for place in places():
        for folder in sorted(place.glob("*")):
            if (folder / ENTRY).exists() and folder.name not in found:
                # an application may end meanwhile
                with suppress(BadFile):
                    entry = Entry.read(folder)
                    if entry.answers():
                        found[folder.name] = folder, entry
    return found


def find(name: str | None = None) -> tuple[Path, Entry]:
    """Return the running application *name*; without a name, the only one.

    Raise `EngineError` if it does not run, and `BadInput` if several run without a name given.
    """
    if name is not None:
        return _named(name)
    found = running()
    if not found:
        raise EngineError("no application is running; `sojourn run` starts one")
    return only(found)


def only(found: Mapping[str, tuple[Path, Entry]]) -> tuple[Path, Entry]:
    """Return the only running application of those found. Raise `BadInput` if several run."""
    if len(found) > 1:
        raise BadInput(
            f"{len(found)} applications are running: {', '.join(found)}; choose one: "
            f"--app {min(found)}"
        )
    return next(iter(found.values()))


def exit_status(folder: Path, pid: int) -> int | None:
    """Return the exit status of the process that held *folder* last; None if it was killed."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        ended = json.loads((folder / ENDED).read_text(encoding="utf-8"))
        if ended["pid"] == pid:
            return int(ended["exit_status"])
    return None


def _named(name: str) -> tuple[Path, Entry]:
    for place in places():
        folder = place / name
        if "/" not in name and (folder / ENTRY).exists():
            entry = Entry.read(folder)  # raises if it cannot be read
            if entry.answers():
                return folder, entry
    others = ", ".join(running())
    known = f"; running: {others}" if others else "; `sojourn run` starts one"
    raise EngineError(f"no application {shown(name)} is running{known}")

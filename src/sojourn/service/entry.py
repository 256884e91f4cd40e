"""The file that describes a running application, and how commands find it."""

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.files.durable_file import write_durably
from sojourn.service.folders import places, refuse_others
from sojourn.topology.check import shown

__all__ = ["ENDED", "ENTRY", "TOKEN", "Entry", "exit_status", "find", "only", "running"]

ENTRY, TOKEN, ENDED = "running.json", "token", "ended.json"
"""Files beside the socket."""

_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A running application: its process, socket, and the folders of its state and logs."""

    name: str
    pid: int
    address: str
    started_at: str
    socket: str
    state: str
    logs: str

    def write(self, folder: Path) -> None:
        """Write it atomically."""
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
        """Tell whether a process listens on its socket, also one that is busy for longer."""
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
                # it may end meanwhile
                with suppress(BadFile):
                    entry = Entry.read(folder)
                    if entry.answers():
                        found[folder.name] = folder, entry
    return found


def find(name: str | None = None) -> tuple[Path, Entry]:
    """Return the running application *name*; without a name, the only one."""
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

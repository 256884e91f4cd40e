"""What is written of a running application, and how it is found again."""

import json
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from sojourn.durable_file import write_durably
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.service.folders import places, refuse_others
from sojourn.topology.check import shown

__all__ = ["ENTRY", "TOKEN", "Entry", "find", "running"]

ENTRY, TOKEN = "running.json", "token"
"""The files beside the socket."""

_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A running application: its process, its socket, and the folders of its state and logs."""

    name: str
    pid: int
    address: str
    started_at: str
    socket: str
    state: str
    logs: str

    def write(self, folder: Path) -> None:
        """Write it, so that nobody reads half of it."""
        write_durably(folder / ENTRY, json.dumps(asdict(self)).encode(), mode=0o600)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return what is written in *folder*. Raise `BadFile` if it is not what we wrote."""
        path = folder / ENTRY
        refuse_others(folder)
        refuse_others(path)
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise BadFile(
                str(path), f"does not describe a running application: {error}", "remove it"
            ) from error

    @property
    def answers(self) -> bool:
        """Whether somebody listens on its socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_S)
            try:
                connection.connect(self.socket)
            except (TimeoutError, BlockingIOError):
                return True  # too busy to answer is not gone
            except OSError:
                return False
        return True


def running() -> dict[str, tuple[Path, Entry]]:
    """Return the applications of ours that run, with their folders, by name."""
    found: dict[str, tuple[Path, Entry]] = {}
    for place in places():
        for folder in sorted(place.glob("*")):
            if (folder / ENTRY).exists() and folder.name not in found:
                # it may end while we look
                with suppress(BadFile):
                    entry = Entry.read(folder)
                    if entry.answers:
                        found[folder.name] = folder, entry
    return found


def find(name: str | None = None) -> tuple[Path, Entry]:
    """Return the running application called *name*, or the only one.

    Raise `EngineError` if there is none, `BadInput` if it is not clear which is meant.
    """
    if name is not None:
        return _named(name)
    found = running()
    if not found:
        raise EngineError("no application runs; `sojourn run` starts one")
    if len(found) > 1:
        names = ", ".join(found)
        raise BadInput(f"{len(found)} applications run, {names}; say which: --app {min(found)}")
    return next(iter(found.values()))


def _named(name: str) -> tuple[Path, Entry]:
    for place in places():
        folder = place / name
        if "/" not in name and (folder / ENTRY).exists():
            entry = Entry.read(folder)  # which says what is wrong with it
            if entry.answers:
                return folder, entry
    names = ", ".join(running()) or "none"
    raise EngineError(f"no application {shown(name)} runs; those that run: {names}")

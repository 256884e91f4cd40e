"""The shared folder, to which Spark's tasks write from any machine.

It may be on a network file system; the state folder must not be. Both are marked with the same
id, because checkpoints in one belong to offsets in the other.
"""

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.files.durable_file import write_durably
from sojourn.files.private_files import FILE_MODE, claim_folder

__all__ = ["SharedState"]

_MARK = "state-id"
_WITHIN = "shared"
_OTHER = "choose another with --shared-state"


@dataclass(frozen=True, slots=True)
class SharedState:
    """The shared folder of a state."""

    state: Path
    """The state folder."""
    given: Path | None = None
    """The user's choice of the shared folder; None for one within *state*."""

    def __post_init__(self) -> None:
        if self.given is not None and self.folder.resolve() == self.state.resolve():
            raise BadInput(
                f"--shared-state and --state are both {self.state}; leave out --shared-state, "
                "or choose another folder for it"
            )

    @property
    def folder(self) -> Path:
        """The absolute path of the shared folder."""
        return (self.given or self.state / _WITHIN).absolute()

    def claim(self, queries: Sequence[str], before: str | None) -> None:
        """Claim the folder for the checkpoints of *queries*, and mark it.

        *before* is the shared folder that the state used last, if any. Raise `BadFile` if the
        folder belongs to another state, or if it lacks the checkpoints that were in *before*.
        """
        mark = self._own_mark()
        self._check_divided(queries)
        found = self._mark()
        if found == mark:
            return
        if found is not None:
            raise BadFile(
                str(self.folder),
                f"belongs to another state folder than {self.state}",
                f"start with the one that it belongs to (--state), or {_OTHER}",
            )
        if before is not None:
            raise BadFile(
                str(self.folder),
                f"does not have the shared part of the state in {self.state}, which was last "
                f"used in {before}",
                "restore that folder, or name the one that it was moved to (--shared-state), "
                "or start without this state (--fresh)",
            )
        claim_folder(self.folder)
        if any(self.folder.iterdir()):
            raise BadFile(str(self.folder), "is not empty, and not a shared folder", _OTHER)
        self._write_mark(mark)

    def forget(self) -> None:
        """Delete the folder's content, if it belongs to this state.

        The mark is deleted last, so that the folder still belongs to this state if it fails.
        """
        if not self.folder.is_dir() or self._mark() != self._own_mark():
            return
        try:
            for found in self.folder.iterdir():
                if found.name != _MARK:
                    shutil.rmtree(found) if found.is_dir() else found.unlink()
            (self.folder / _MARK).unlink()
        except OSError as error:
            raise EngineError(
                f"{error.filename} cannot be removed: {error.strerror}"
            ) from error

    def _check_divided(self, queries: Sequence[str]) -> None:
        """Raise `BadFile` if the state folder has checkpoints that belong in the shared one."""
        inside, shared = self.state / "checkpoints", self.folder / "checkpoints"
        if found := [inside / query for query in queries if (inside / query).exists()]:
            moved = shlex.join(["mv", *map(str, found), str(shared)])
            marked = shlex.join(["cp", str(self.state / _MARK), str(self.folder)])
            raise BadFile(
                str(found[0]),
                f"is written by tasks, whose checkpoints are in {self.folder}",
                f"run `{shlex.join(['mkdir', '-p', str(shared)])} && {marked} && {moved}`, or "
                "start without this state (--fresh)",
            )

    def _own_mark(self) -> str:
        path = self.state / _MARK
        if not path.exists():
            write_durably(path, uuid4().hex.encode())
        return path.read_text(encoding="ascii")

    def _mark(self) -> str | None:
        try:
            return (self.folder / _MARK).read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise BadFile(
                str(self.folder / _MARK), f"cannot be read: {error}", _OTHER
            ) from error

    def _write_mark(self, mark: str) -> None:
        """Write the mark; fail if another start has marked the folder at the same time."""
        path = self.folder / _MARK
        try:
            with os.fdopen(
                os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE), "wb"
            ) as file:
                file.write(mark.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise BadFile(str(path), problem, _OTHER) from error

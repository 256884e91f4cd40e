"""The shared folder, to which Spark's tasks write from any machine.

It may be on a network file system; the state folder must not be. Both are marked with the same
id, because checkpoints in one belong to offsets in the other. Before anything else runs on an
executor, a task there shows that it sees the same folder.
"""

import os
import shlex
import shutil
import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from uuid import uuid4

from pyspark.sql import SparkSession

from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.files.durable_file import write_durably
from sojourn.files.private_files import FILE_MODE, claim_folder, write_new
from sojourn.spark.agent.agent import node_name
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.nodes.agent_start import Start
from sojourn.spark.driver.nodes.executors import Executor, on_executor

_MARK = "state-id"
_WITHIN = "shared"
_OTHER = "choose another with --shared-state"
_PATIENCE_S = 60.0
_AT_ONCE, _MOST_NAMED = 8, 3
_PREFIX = "shared-"
_ANOTHER = "a different folder is mounted there"


def written_by_tasks(layout: Layout) -> list[str]:
    """Return the queries whose tasks write to their checkpoints, on any node.

    Those are Spark's own aggregations, which have a state store, and deduplicating sinks, which
    have a memory of the records they wrote. Cuts, logs and states of keys are written by hosts,
    and the offsets of all queries by Spark's driver, all on the driver's machine.
    """
    return [*layout.misfits.values(), *layout.deduplicated]


@dataclass(frozen=True, slots=True)
class SharedState:
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


class SharedFolder:
    """The shared *folder*, which the tasks of *queries* need on every executor of *session*."""

    def __init__(self, session: SparkSession, folder: Path, queries: Collection[str]) -> None:
        self._session, self._folder, self._queries = session, folder, queries
        self._checked = False

    def check(self, executors: Iterable[Executor]) -> None:
        """Raise `BadFile` if any of *executors* does not share the folder."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="folder") as pool:
            told = pool.map(partial(self._problem, stopping=threading.Event()), executors)
            problems = [problem for problem in told if problem]
        if problems:
            more = len(problems) - _MOST_NAMED
            others = f", and {more} more" if more > 0 else ""
            named = f"{', '.join(problems[:_MOST_NAMED])}{others}"
            raise BadFile(str(self._folder), f"is not shared by {named}", self._way_out)
        self._checked = True

    def before(self, start: Start) -> Start:
        """Return *start*, preceded by a check for executors that register after `check`.

        An executor that does not share the folder gets no agent: `EngineError` has the reason.
        """

        def checked(executor: Executor, stopping: threading.Event) -> None:
            if self._checked and (problem := self._problem(executor, stopping)):
                raise EngineError(f"{self._folder} is not shared by {problem}; {self._way_out}")
            start(executor, stopping)

        return checked

    @property
    def _way_out(self) -> str:
        which = ", ".join(self._queries)
        return (
            f"tasks of {which} write there: choose a folder with --shared-state on storage "
            "that all nodes have at the same path and this user can write to, such as NFS"
        )

    def _problem(self, executor: Executor, stopping: threading.Event) -> str:
        """Return the node of *executor* and why it does not share the folder; else empty."""
        where, name = f"{node_name(executor.id)} on {executor.host}", f"{_PREFIX}{token_hex(8)}"
        asked, answered = self._folder / name, self._folder / f"{name}.answer"
        token = token_hex(16)
        try:
            write_new(asked, token.encode())
            visit = partial(answer_token, asked, answered, token)
            if said := on_executor(self._session, executor, visit, _PATIENCE_S, stopping):
                return f"{where}: {said}"
            if not answered.exists():
                return f"{where}: files written there are not visible here"
        except OSError as error:
            raise BadFile(
                str(self._folder), f"cannot be written: {error.strerror}", "check its owner"
            ) from error
        finally:
            asked.unlink(missing_ok=True)
            answered.unlink(missing_ok=True)
        return ""


def answer_token(asked: Path, answered: Path, token: str) -> str:
    """In a task: read the *token* that the driver wrote, and write it to *answered*.

    Return the reason if that fails; empty if it succeeds.
    """
    try:
        found = asked.read_text(encoding="ascii")
    except FileNotFoundError:
        return _ANOTHER if asked.parent.is_dir() else "there is no such folder"
    except OSError as error:
        return f"it cannot be read there: {error.strerror}"
    if found != token:
        return _ANOTHER
    try:
        write_new(answered, token.encode())
    except OSError as error:
        return f"it cannot be written there: {error.strerror}"
    return ""

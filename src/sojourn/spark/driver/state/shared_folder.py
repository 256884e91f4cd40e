"""Checks that executors reach the shared folder, for queries whose tasks write there."""

import threading
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex

from pyspark.sql import SparkSession

from sojourn.errors import BadFile, EngineError
from sojourn.files.private_files import write_new
from sojourn.spark.agent.agent import node_name
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.nodes.agent_start import Start
from sojourn.spark.driver.nodes.executors import Executor, on_executor

__all__ = ["SharedFolder", "answer_token", "shared_folder", "written_by_tasks"]

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
    aggregations = [name for name, each in layout.natives.items() if each.kind == "aggregate"]
    return [*aggregations, *(f"sink {sink.name}" for sink in layout.deduplicated)]


def shared_folder(
    session: SparkSession, folder: Path | None, queries: Collection[str]
) -> "SharedFolder | None":
    """Return the check that executors share *folder*; None if no task writes there."""
    return SharedFolder(session, folder, sorted(queries)) if queries and folder else None


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
            visit = _Visit(str(asked), str(answered), token)
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


@dataclass(frozen=True, slots=True)
class _Visit:
    """The function that a task calls: pickled by the name of its class, not by its code."""

    asked: str
    answered: str
    token: str

    def __call__(self) -> str:
        return answer_token(Path(self.asked), Path(self.answered), self.token)


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

"""Appends turns of the loop to a history."""

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from sojourn.errors import BadInput
from sojourn.history.file import WAIT_S, opened, refusals, transaction
from sojourn.history.format import (
    Run,
    record_text,
    run_columns,
    sketch_bytes,
)
from sojourn.knowledge import Episode, JudgedSlice
from sojourn.model.network import PERCENTILES


class HistoryFile:
    """Appends to the history at *path*: a new file, or one with earlier runs.

    Each turn is a transaction, so a killed process loses only the current turn. *most_turns*
    limits the turns kept: the oldest are deleted. A lock of another program is waited for, up
    to *wait_s*. A context manager: leaving it closes the file.

        with HistoryFile(path) as history:
            history.begin(Run(...))
            for episode in loop.run(until_s):
                history.append(episode)
    """

    def __init__(
        self, path: Path, *, most_turns: int | None = None, wait_s: float = WAIT_S
    ) -> None:
        if most_turns is not None and most_turns < 1:
            raise BadInput(f"most_turns is {most_turns}; write 1 or more, or None for all")
        self._path, self._most_turns = path, most_turns
        self._run: int | None = None
        self._connection = opened(path, to="append", wait_s=wait_s)

    def begin(self, run: Run) -> int:
        """Begin *run*, to which turns are appended from now on; return its number."""
        row = run_columns(run)
        with refusals(self._path, to="append"), transaction(self._connection):
            if self._most_turns is not None:
                self._connection.execute(
                    "DELETE FROM runs WHERE run NOT IN (SELECT run FROM turns)"
                )
            self._run = _insert(self._connection, "runs", row)
        return self._run

    def append(self, episode: Episode) -> None:
        """Append a turn to the current run; it is committed when this returns."""
        if self._run is None:
            raise BadInput("no run has begun; call begin() first")
        row = {"run": self._run, **_columns(episode)}
        with refusals(self._path, to="append"), transaction(self._connection):
            turn = _insert(self._connection, "turns", row)
            for judged in episode.judged:
                found = {"run": self._run, "turn": turn, **_slice_columns(judged)}
                _insert(self._connection, "slices", found)
            if self._most_turns is not None:
                oldest = turn - self._most_turns
                self._connection.execute("DELETE FROM slices WHERE turn <= ?", (oldest,))
                self._connection.execute("DELETE FROM turns WHERE turn <= ?", (oldest,))

    def close(self) -> None:
        """Close the file, and merge its write-ahead log into it. Idempotent."""
        with suppress(sqlite3.Error):
            # Without a write-ahead log the file can be copied, and read in a read-only folder.
            # This fails while another process has it open, which does no harm.
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _columns(episode: Episode) -> dict[str, str | bytes | float | None]:
    seen, decision, cost = episode.observation, episode.decision, episode.cost
    expected = decision.expected
    return {
        "at_s": seen.at_s,
        "usable": seen.usable,
        "arrivals_per_s": seen.arrivals_per_s,
        "mean_s": seen.mean_s,
        "p95_s": seen.percentile_s(PERCENTILES["p95"]),
        "kind": decision.kind,
        "processors_before": decision.before.processors,
        "processors_after": decision.after.processors,
        "allocation_before": str(decision.before),
        "allocation_after": str(decision.after),
        "reason": _unicode(decision.reason),
        "expected_statistic": None if expected is None else _unicode(expected.statistic),
        "expected_s": None if expected is None else expected.seconds,
        "changed": 0 if cost is None else len(cost.changed),
        "pause_s": None if cost is None else cost.pause_s,
        "failure": _unicode(episode.failure),
        "record": record_text(episode),
        "completions": sketch_bytes(seen.completions),
        "sums": sketch_bytes(seen.sums),
    }


def _slice_columns(judged: JudgedSlice) -> dict[str, str | float | None]:
    found, objective = judged.slice, judged.objective
    return {
        "since_s": found.since_s,
        "until_s": found.until_s,
        "born": found.born,
        "in_time": found.in_time,
        "mean_s": found.sum_s / found.born if found.born else None,
        "kept": judged.kept,
        "cause": _unicode(judged.cause),
        "level": judged.level,
        "target_statistic": objective.target.statistic,
        "target_s": objective.target.seconds,
        "required": objective.kept,
    }


def _unicode(text: str) -> str:
    """Return *text* without the lone surrogates that file names may contain."""
    return text.encode(errors="backslashreplace").decode()


def _insert(
    connection: sqlite3.Connection, table: str, row: Mapping[str, str | bytes | float | None]
) -> int:
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    done = connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", row)  # noqa: S608 - names of ours
    return int(done.lastrowid or 0)

"""The SQLite file of a history: its tables, connections and errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from sojourn.errors import BadFile, DiskFull
from sojourn.files.private_files import append_to

FORMAT = 2
"""The version of the tables; files of another version are refused."""

WAIT_S = 5.0
"""The seconds to wait while another program writes."""

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE runs (
        run INTEGER PRIMARY KEY,
        started_at TEXT NOT NULL,
        every_s REAL NOT NULL,
        policy TEXT NOT NULL,
        target_statistic TEXT,
        target_s REAL,
        midnight_s REAL NOT NULL,
        allocation TEXT NOT NULL,
        topology TEXT NOT NULL,
        plan TEXT
    )""",
    # The other columns are for queries; turns are read back from `record` and the two sketches,
    # because SQLite has no NaN, and only JSON can hold text that is not valid Unicode.
    """CREATE TABLE turns (
        turn INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        at_s REAL,
        usable INTEGER NOT NULL,
        arrivals_per_s REAL,
        mean_s REAL,
        p95_s REAL,
        kind TEXT NOT NULL,
        processors_before INTEGER NOT NULL,
        processors_after INTEGER NOT NULL,
        allocation_before TEXT NOT NULL,
        allocation_after TEXT NOT NULL,
        reason TEXT NOT NULL,
        expected_statistic TEXT,
        expected_s REAL,
        changed INTEGER NOT NULL,
        pause_s REAL,
        failure TEXT NOT NULL,
        record TEXT NOT NULL,
        completions BLOB NOT NULL,
        sums BLOB NOT NULL
    )""",
    "CREATE INDEX turns_of_run ON turns (run, turn)",
)
# For queries too: `record` has the slices that were judged in a turn. Files that were begun
# without this table get it when they are appended to.
_SLICES = """CREATE TABLE IF NOT EXISTS slices (
    run INTEGER NOT NULL REFERENCES runs (run),
    turn INTEGER NOT NULL REFERENCES turns (turn),
    since_s REAL NOT NULL,
    until_s REAL NOT NULL,
    born INTEGER NOT NULL,
    in_time INTEGER NOT NULL,
    mean_s REAL,
    kept INTEGER NOT NULL,
    cause TEXT NOT NULL,
    level REAL NOT NULL,
    target_statistic TEXT NOT NULL,
    target_s REAL NOT NULL,
    required REAL NOT NULL
)"""
_META = {"application": "sojourn history", "format": str(FORMAT)}


def opened(
    path: Path, *, to: Literal["read", "append"], wait_s: float = WAIT_S
) -> sqlite3.Connection:
    """Return a connection to the history at *path*; to append, it is created if missing.

    Raise `BadFile` if there is no file to read, it is not a history, or another program has
    locked it for longer than *wait_s*.
    """
    try:
        if to == "append":
            path.parent.mkdir(parents=True, exist_ok=True)
        # unlike SQLite, the operating system says why a file cannot be opened
        (append_to(path) if to == "append" else path.open("rb")).close()
        # a path with an invalid byte fails only here
        uri = f"{path.absolute().as_uri()}?mode={'rw' if to == 'append' else 'ro'}"
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadFile(
            str(path), f"cannot be {_DONE[to]}: {problem}", "check the path"
        ) from error
    with refusals(path, to=to):
        connection = sqlite3.connect(uri, uri=True, timeout=wait_s, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            _check(connection, path, to=to)
            if to == "append":
                # Readers see the last complete turn and do not block the writer. A turn
                # survives a killed process; a power failure may lose the last few, but does not
                # corrupt the file. To keep them, each turn would have to wait for the disk.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction: commit on success, roll back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
            connection.execute("ROLLBACK")
        raise


@contextmanager
def refusals(path: Path, *, to: Literal["read", "append"]) -> Iterator[None]:
    """Turn SQLite errors into `DiskFull`, or a `BadFile` with the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        # the low byte is the kind of error, the rest its details
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise DiskFull(str(path), str(path.parent)) from error
        problem, way_out = _REFUSALS.get(
            code, (f"cannot be {_DONE[to]}: {error}", "check the disk and its permissions")
        )
        raise BadFile(str(path), problem, way_out) from error


_DONE = {"read": "read", "append": "written"}
_OTHER = ("is not a history", "name a file that sojourn wrote, or one that does not exist yet")
_DAMAGED = ("is damaged", "restore a copy, or save what is left of it: sqlite3 FILE .recover")
_LOCKED = ("is locked by another program", "close it there, and try again")
_REFUSALS = {
    sqlite3.SQLITE_NOTADB: _OTHER,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
}


def _check(
    connection: sqlite3.Connection, path: Path, *, to: Literal["read", "append"]
) -> None:
    """Check that it is a history of this format; initialise an empty file to append to."""
    if to == "append" and not _tables(connection):
        # a turn takes about 3 kB: smaller pages would stay half empty
        connection.execute("PRAGMA page_size = 16384")
        with transaction(connection):
            if not _tables(connection):  # another process may have created them meanwhile
                for statement in _TABLES:
                    connection.execute(statement)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", _META.items())
    if not {"meta", "runs", "turns"} <= _tables(connection):
        raise BadFile(str(path), *_OTHER)
    try:
        meta = dict(map(tuple, connection.execute("SELECT key, value FROM meta")))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        # a table of that name with other columns
        raise BadFile(str(path), *_OTHER) from error
    if meta.get("application") != _META["application"]:
        raise BadFile(str(path), *_OTHER)
    if meta.get("format") != _META["format"]:
        raise BadFile(
            str(path),
            f"is a history of format {meta.get('format')}, but this version has {FORMAT}",
            "use the version of sojourn that wrote it, or another file",
        )
    if to == "append" and "slices" not in _tables(connection):
        connection.execute(_SLICES)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {
        row["name"]
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }

"""Where applications store rows: in PostgreSQL, or in an SQLite file.

Several processors write at once, and after a failure a record is processed again. So every row
has a key, the id of its record or what it is about, and the statement that writes it says in
`ON CONFLICT` what happens if the key is there already. Both databases understand that.
"""

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sojourn.errors import BadInput, EngineError
from sojourn.registry import optional
from sojourn.service.folders import database_folder, private_folder

if TYPE_CHECKING:  # psycopg is optional
    import psycopg

DATABASE = "SOJOURN_DATABASE"
"""The variable with the address: `postgresql://…`, or the path of an SQLite file."""

Row: TypeAlias = tuple[Any, ...]

_POSTGRES = ("postgresql://", "postgres://")
_CONNECT_S = 10
# A transaction takes less than a millisecond; the rest is the queue of the other writers.
_BUSY_S = 60.0
_LOOK_S = 0.01
# Processors start together, and `IF NOT EXISTS` does not keep two from creating one table.
_CREATING = "SELECT pg_advisory_xact_lock(hashtext('sojourn_papers.apps'))"


class Database(Protocol):
    """A connection to a database. A question mark in a statement stands for a value."""

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Run each statement with each of its rows: all in one transaction."""

    def read(self, query: str) -> list[Row]:
        """Return the rows that a query selects."""

    def close(self) -> None:
        """Close the connection."""


def connect(application: str, schema: Sequence[str]) -> Database:
    """Open the database that `SOJOURN_DATABASE` names: the `set_up` of what writes to it.

    The default is an SQLite file of the application, beside the state of applications.
    """
    address = os.environ.get(DATABASE)
    if not address:
        address = str(private_folder(database_folder()) / f"{application}.sqlite")
    return open_database(address, schema)


def open_database(address: str, schema: Sequence[str]) -> Database:
    """Open the database at *address*; the statements of *schema* create what is missing.

    Raise `BadInput` for an address of another kind, `EngineError` if it does not open.
    """
    if address.startswith(_POSTGRES):
        return PostgresDatabase(address, schema)
    if "://" in address:
        kind = address.partition("://")[0]
        raise BadInput(
            f"{kind}:// is not a supported database; write postgresql://…, or the path of "
            "an SQLite file"
        )
    return SqliteDatabase(Path(address), schema)


class SqliteDatabase:
    """An SQLite file. One writes at a time, the others wait; readers wait for nobody."""

    def __init__(self, path: Path, schema: Sequence[str]) -> None:
        try:
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
            try:
                # Without a sync at each commit: a process that dies loses nothing, and what
                # a machine may lose when its power fails, Kafka may lose as well.
                _write_ahead(self._connection)
                self._connection.execute("PRAGMA synchronous = NORMAL")
                for statement in schema:
                    self._connection.execute(statement)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise EngineError(f"the database {path} cannot be opened: {error}") from error

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Run each statement with each of its rows: all in one transaction."""
        with self._connection as connection:
            # at once: a transaction that begins by reading cannot wait for its turn to write
            connection.execute("BEGIN IMMEDIATE")
            for statement, values in rows.items():
                connection.executemany(statement, values)

    def read(self, query: str) -> list[Row]:
        """Return the rows that a query selects."""
        return self._connection.execute(query).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work at once; the first of those that open a file changes it.

    SQLite does not wait for the others then, as it does otherwise.
    """
    until_s = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until_s:
                raise
            time.sleep(_LOOK_S)
        else:
            return


class PostgresDatabase:
    """A PostgreSQL server. A connection that was lost is opened again by the next call."""

    def __init__(self, address: str, schema: Sequence[str]) -> None:
        self._address = address
        self._connection = self._open()
        try:
            with self._connection.transaction():
                for statement in (_CREATING, *schema):
                    self._connection.execute(statement.encode())
        except BaseException:
            self.close()
            raise

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Run each statement with each of its rows: all in one transaction."""
        connection = self._opened()
        with connection.transaction(), connection.cursor() as cursor:
            for statement, values in rows.items():
                cursor.executemany(_placeholders(statement), values)

    def read(self, query: str) -> list[Row]:
        """Return the rows that a query selects."""
        return self._opened().execute(_placeholders(query)).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _opened(self) -> "psycopg.Connection[Row]":
        if self._connection.closed:
            self._connection = self._open()
        return self._connection

    def _open(self) -> "psycopg.Connection[Row]":
        with optional("PostgreSQL needs", "databases"):
            import psycopg  # noqa: PLC0415
        try:
            return psycopg.connect(self._address, autocommit=True, connect_timeout=_CONNECT_S)
        except psycopg.Error as error:  # its text has the host, but no password
            raise EngineError(f"the database cannot be opened: {error}") from error


def _placeholders(statement: str) -> bytes:
    return statement.replace("%", "%%").replace("?", "%s").encode()

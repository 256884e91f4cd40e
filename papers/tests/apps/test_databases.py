"""What every database does for an application. PostgreSQL takes part where it is installed."""

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pytest

import postgres
from sojourn.errors import BadInput, EngineError
from sojourn_papers.apps import logstream, wordcount
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.database import DATABASE, open_database

pytestmark = pytest.mark.timeout(120)

SCHEMA = ("CREATE TABLE IF NOT EXISTS pets (name TEXT PRIMARY KEY, legs BIGINT NOT NULL)",)
INSERT = "INSERT INTO pets VALUES (?, ?) ON CONFLICT DO NOTHING"
PETS = "SELECT name, legs FROM pets ORDER BY name"
WRITERS = 6
NUMBERS = count()


@pytest.fixture(scope="module")
def server():
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg")
    with postgres.server() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Return the address of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "pets.sqlite")
    whole = request.getfixturevalue("server")
    name = f"test_{next(NUMBERS)}"
    database = open_database(whole, ())
    database._connection.execute(f"CREATE DATABASE {name}")  # noqa: SLF001
    database.close()
    return whole.replace("/postgres", f"/{name}")


@pytest.fixture
def database(address):
    opened = open_database(address, SCHEMA)
    yield opened
    opened.close()


def test_what_is_written_is_read(database):
    text = "100 % sure? 'yes' \N{GRINNING FACE}"
    database.write({INSERT: [(text, 4), ("bird", 2)]})
    assert set(database.read(PETS)) == {("bird", 2), (text, 4)}
    assert database.read("SELECT name FROM pets WHERE name LIKE '100 %'") == [(text,)]


def test_a_row_that_is_there_is_not_written_again(database):
    database.write({INSERT: [("cat", 4), ("cat", 4)]})
    database.write({INSERT: [("cat", 3)]})
    assert database.read(PETS) == [("cat", 4)]


def test_rows_are_written_all_or_none(database):
    with pytest.raises(Exception, match=r"(?i)null"):
        database.write({INSERT: [("cat", 4), ("snake", None)]})
    assert database.read(PETS) == []
    database.write({INSERT: [("cat", 4)]})
    assert database.read(PETS) == [("cat", 4)]


def test_processors_open_and_write_at_once(address):
    """They start together, and each creates the tables that are missing."""
    barrier = threading.Barrier(WRITERS)

    def write(writer):
        barrier.wait()
        own = open_database(address, SCHEMA)
        try:
            for number in range(100):
                own.write({INSERT: [(f"{number}", 4), (f"{writer}/{number}", 4)]})
        finally:
            own.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    database = open_database(address, SCHEMA)
    assert len(database.read(PETS)) == 100 + 100 * WRITERS
    database.close()


def test_a_process_that_dies_leaves_no_half_transaction(address, database):
    """Everything that it had written is there, with all rows of each transaction."""
    program = f"""
from sojourn_papers.apps.database import open_database
database = open_database({address!r}, {SCHEMA!r})
number = 0
while True:
    database.write({{{INSERT!r}: [(f"{{number}}/{{part}}", part) for part in range(5)]}})
    number += 1
    print(number, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            while int(process.stdout.readline()) < 50:
                pass
        finally:
            process.kill()
        told = int(([50, *process.stdout.read().split()])[-1])
    names = [name.split("/") for name, _ in database.read(PETS)]
    whole = {number for number, part in names}
    assert len(names) == 5 * len(whole)
    assert len(whole) >= told
    database.write({INSERT: [("0/0", 9), ("new", 1)]})
    assert len(database.read(PETS)) == len(names) + 1


def test_a_database_that_does_not_open_is_named(tmp_path):
    with pytest.raises(EngineError, match="cannot be opened"):
        open_database(str(tmp_path / "missing" / "pets.sqlite"), SCHEMA)
    (tmp_path / "text").write_text("This is not a database, but it is long enough. " * 100)
    with pytest.raises(EngineError, match="not a database"):
        open_database(str(tmp_path / "text"), SCHEMA)
    with pytest.raises(BadInput, match="mongodb:// is not a supported database"):
        open_database("mongodb://here", SCHEMA)


def test_a_server_that_is_away_is_named_without_the_password():
    pytest.importorskip("psycopg")
    with pytest.raises(EngineError, match="cannot be opened") as raised:
        open_database("postgresql://me:secret@127.0.0.1:9/postgres", SCHEMA)
    assert "secret" not in str(raised.value)


def test_a_lost_connection_is_opened_again(server):
    lost, other = open_database(server, ()), open_database(server, ())
    try:
        (who,) = lost.read("SELECT pg_backend_pid()")
        other.read(f"SELECT pg_terminate_backend({who[0]})")
        with pytest.raises(Exception, match=r"terminat|closed"):
            lost.read("SELECT 1")
        assert lost.read("SELECT 1") == [(1,)]
    finally:
        lost.close()
        other.close()


# -- the applications --------------------------------------------------------------------------


def test_the_larger_count_of_a_word_wins(address, monkeypatch):
    """Updates may come again and out of order."""
    monkeypatch.setenv(DATABASE, address)
    with contextmanager(wordcount.open_table)() as database:
        for n in (1, 3, 2, 3, 10, 9):
            wordcount.store(database, "whale", n)
    assert entry("wordcount").stored(address) == {"words": {("whale", 10)}}


def test_log_records_that_come_again_change_nothing(address, monkeypatch):
    monkeypatch.setenv(DATABASE, address)
    indexed = ("06-09 06:06:20", "", "kernel", "Out of Memory", "out-of-memory")
    with contextmanager(logstream.open_tables)() as database:
        for identity in ("lines/0/1.rules.0", "lines/0/2.rules.0") * 2:
            logstream.store_index(database, identity, *indexed, ["memory", "out"])
            logstream.store_counts(database, identity, "rule", "out-of-memory", "06-09 06")
    assert entry("logstream").stored(address) == {
        "entries": {(*indexed, 2)},
        "terms": {("memory", 2), ("out", 2)},
        "counts": {("rule", "out-of-memory", "06-09 06", 2)},
    }


def test_the_default_is_a_file_of_the_application_for_its_owner(tmp_path, monkeypatch):
    monkeypatch.delenv(DATABASE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with contextmanager(wordcount.open_table)() as database:
        wordcount.store(database, "whale", 1)
    (file,) = (tmp_path / "sojourn" / "databases").glob("*.sqlite")
    assert file.stem == wordcount.app.name
    assert file.parent.stat().st_mode & 0o077 == 0
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()

"""Stores for states by key: `python benchmarks/state_stores.py [--keys N] [--json]`.

A state is read once for each group of records of a key, and changes are merged once a batch, in
one transaction that is on disk when it ends. RocksDB is measured if rocksdict is installed.
"""

import argparse
import json
import random
import shutil
import sqlite3
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import lmdb
from rich import box
from rich.console import Console
from rich.table import Table

STATE_BYTES, LOADED_TOGETHER, READS, MERGED, GROUPS = 60, 100_000, 50_000, 10_000, 256


class Lmdb:
    """A file that is mapped into memory: what Sojourn uses."""

    name = "LMDB"

    def __init__(self, folder):
        self._store = lmdb.open(str(folder), map_size=1 << 36, readahead=False)

    def merge(self, states):
        """Write states in one transaction."""
        with self._store.begin(write=True) as writing, writing.cursor() as cursor:
            cursor.putmulti(sorted(states))

    def read(self, key):
        """Return a state."""
        with self._store.begin() as reading:
            return reading.get(key)

    def close(self):
        """Close it."""
        self._store.close()


class Sqlite:
    """A table whose rows are in the order of their keys, with a write-ahead log."""

    name = "SQLite"

    def __init__(self, folder):
        self._writing, self._reading = (
            sqlite3.connect(folder / "states.sqlite", isolation_level=None) for _ in range(2)
        )
        self._writing.execute("pragma page_size=8192")
        self._writing.execute("pragma journal_mode=wal")
        self._writing.execute("pragma synchronous=full")
        for connection in (self._writing, self._reading):
            connection.execute("pragma cache_size=-65536")
            connection.execute("pragma mmap_size=8589934592")
        self._writing.execute(
            "create table states(grp int, key blob, state blob, primary key(grp, key)) "
            "without rowid"
        )

    def merge(self, states):
        """Write states in one transaction."""
        rows = sorted((crc32(key) % GROUPS, key, state) for key, state in states)
        self._writing.execute("begin immediate")
        self._writing.executemany("insert or replace into states values(?, ?, ?)", rows)
        self._writing.execute("commit")

    def read(self, key):
        """Return a state."""
        query = "select state from states where grp=? and key=?"
        return self._reading.execute(query, (crc32(key) % GROUPS, key)).fetchone()[0]

    def close(self):
        """Close it."""
        self._reading.close()
        self._writing.close()


class RocksDb:
    """A log-structured merge tree, through rocksdict."""

    name = "RocksDB"

    def __init__(self, folder):
        from rocksdict import Options, Rdict  # noqa: PLC0415 - may not be installed

        self._store = Rdict(str(folder), Options(raw_mode=True))

    def merge(self, states):
        """Write states in one batch."""
        from rocksdict import WriteBatch, WriteOptions  # noqa: PLC0415

        batch, options = WriteBatch(raw_mode=True), WriteOptions()
        options.sync = True
        for key, state in states:
            batch.put(key, state)
        self._store.write(batch, options)

    def read(self, key):
        """Return a state."""
        return self._store.get(key)

    def close(self):
        """Close it."""
        self._store.close()


def measured(store_class, keys, folder, seed=1):
    """Return the figures of a store with so many keys."""
    chance = random.Random(seed)
    order = chance.sample(range(keys), keys)
    store = store_class(folder)
    loaded_s = _took_s(
        store.merge,
        [
            [
                (_key(number), chance.randbytes(STATE_BYTES))
                for number in order[first : first + LOADED_TOGETHER]
            ]
            for first in range(0, keys, LOADED_TOGETHER)
        ],
    )
    read_s = _took_s(store.read, [_key(chance.randrange(keys)) for _ in range(READS)])
    hot_s = _took_s(store.read, [_key(chance.randrange(1000)) for _ in range(READS)])
    changed = [
        (_key(chance.randrange(keys)), chance.randbytes(STATE_BYTES)) for _ in range(MERGED)
    ]
    merge_s = _took_s(store.merge, [changed])
    store.close()
    size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    return {
        "store": store_class.name,
        "keys": keys,
        "loaded_s": loaded_s,
        "read_us": read_s / READS * 1e6,
        "hot_read_us": hot_s / READS * 1e6,
        "merge_ms": merge_s * 1e3,
        "disk_mb": size / 1e6,
    }


def _key(number):
    return b'["word-%d"]' % number


def _took_s(call, arguments):
    started = time.perf_counter()
    for argument in arguments:
        call(argument)
    return time.perf_counter() - started


def main():
    """Measure each store in a folder of its own, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    stores = [Lmdb, Sqlite, *([RocksDb] if find_spec("rocksdict") else [])]
    found = []
    for store_class in stores:
        folder = Path(tempfile.mkdtemp(prefix="state-stores-"))
        try:
            found.append(measured(store_class, asked.keys, folder))
        finally:
            shutil.rmtree(folder)
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in found[0]:
        table.add_column(name, justify="left" if name == "store" else "right")
    for row in found:
        table.add_row(*(f"{v:.1f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console().print(table)
    if RocksDb not in stores:
        Console().print("RocksDB is not measured: rocksdict is not installed")


if __name__ == "__main__":
    main()

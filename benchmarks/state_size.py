"""What a state costs as it grows, and recovery as the log does, with the files of a host alone.

    python benchmarks/state_size.py [--keys N…] [--logged N…] [--changed 10000] [--json]

For each number of keys, a store that was filled by merging; then batches, in each of which so
many keys *change*, chosen at random:

- pause: what a cut takes of the host's event loop, in which no record is processed
- save: the cut and what has changed, written and synced by a thread
- merge: what has changed is put into the store, by a thread, once the batch is committed
- stall: the longest time meanwhile in which the event loop could not run
- read: a state that is chosen at random, with the store in the system's cache
- recovery: a new process goes on from the last committed cut, whose changes are not merged, and
  has its first state; the store is not in the cache
- memory: of that process, once it has read 50,000 states: its own, and the system's cache

Recovery depends on what was logged since the last commit too: it is measured without a store,
with logs of several lengths. The default run takes two minutes, and 4 GB of disk.
"""

import argparse
import json
import os
import random
import re
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.state.keyed_state import MergeState
from sojourn.spark.wire.record import Record, Root

OPERATOR, TOPIC, STATE_BYTES = "count", ("words", 0), 60
MERGED_TOGETHER, READS, BATCHES = 500_000, 50_000, 5
TICK_S = 0.0002
PAYLOAD = b'{"word":"%s"}' % (b"x" * 100)


def key(number):
    """Return a key as operators have it."""
    return f'["word-{number}"]'


def filled(folder, keys, chance):
    """Fill a store with so many keys; return the batch that is committed then."""
    files, batch = CutFiles(folder), -1
    order = chance.sample(range(keys), keys)
    for batch, first in enumerate(range(0, keys, MERGED_TOGETHER)):
        some = order[first : first + MERGED_TOGETHER]
        states = {key(number): chance.randbytes(STATE_BYTES) for number in some}
        files.state.merge(MergeState(batch, [(CutId(batch, 1), {OPERATOR: states})]))
    files.save(Cut(id=CutId(batch, 1), taken={}))
    files.close()
    return batch


class Part:
    """The ledger of a host, with its log, cuts and states in *folder*."""

    def __init__(self, folder):
        self.files = CutFiles(folder)
        self.ledger, self._offset = Ledger(self.files), 0

    def begin(self, batch):
        """Begin a batch with one relay; return what to do."""
        attempt = self.files.attempts.number(str(os.getpid()))
        done = self.ledger.relay_came(batch, CutId(batch, attempt))
        done += self.ledger.relays_are(CutId(batch, attempt), 1)
        self.files.log.append(self.ledger.unlogged())
        return done

    def count(self, batch, number, chance):
        """Take a record of a key, change its state and let a result leave."""
        root, name = Root(TOPIC, self._offset), f"words/0/{self._offset}"
        self._offset += 1
        self.ledger.takes(batch, root)
        record = Record(name, PAYLOAD, "words", key=key(number), root=name)
        opened = self.ledger.entered(OpenRecord(root, OPERATOR, record)).number
        self.files.log.append(self.ledger.unlogged())
        self.ledger.changed(OPERATOR, key(number), chance.randbytes(STATE_BYTES))
        self.ledger.done(opened, [Leaving(root, Record(f"{name}.0", PAYLOAD, "counts"))])
        self.files.log.append(self.ledger.unlogged())


def timed_ms(call, *arguments):
    """Return what a call returns, and the milliseconds that it took."""
    began_s = time.perf_counter()
    found = call(*arguments)
    return found, 1e3 * (time.perf_counter() - began_s)


def beside(call, *arguments):
    """Return how long a call takes in a thread, and the longest that another one waits."""
    began_s, longest_s = time.perf_counter(), 0.0
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    while thread.is_alive():
        asleep_s = time.perf_counter()
        time.sleep(TICK_S)
        longest_s = max(longest_s, time.perf_counter() - asleep_s - TICK_S)
    return 1e3 * (time.perf_counter() - began_s), 1e3 * longest_s


def cuts(folder, batch, keys, changed, chance):
    """Return what cuts cost, as medians of several batches, and the last batch."""
    part, found = Part(folder), []
    part.begin(batch + 1)
    for now in range(batch + 1, batch + 1 + BATCHES):
        for number in chance.sample(range(keys), changed):
            part.count(now, number, chance)
        (save,), pause_ms = timed_ms(part.ledger.relay_ended, now)
        part.files.log.append(part.ledger.unlogged())
        _, save_ms = timed_ms(part.files.save, save.cut, save.changed)
        paths = [folder / kind / f"{now}-1" for kind in ("cuts", "state/changed")]
        cut_bytes = sum(path.stat().st_size for path in paths)
        part.ledger.saved(save.cut.id)
        part.ledger.relay_left(now)
        if now == batch + BATCHES:
            break  # what has changed is left to recovery
        (merge,) = part.begin(now + 1)
        merge_ms, stall_ms = beside(part.files.state.merge, merge)
        part.ledger.state.merged(merge.upto)
        found.append((pause_ms, save_ms, cut_bytes, merge_ms, stall_ms))
    part.files.close()
    names = ("pause_ms", "save_ms", "cut_bytes", "merge_ms", "stall_ms")
    values = map(median, zip(*found, strict=True))
    return dict(zip(names, values, strict=True)), now


def recovered(folder, batch, keys=0):
    """Go on from the cut of a batch; return how long it takes, and memory after reading."""
    evict(folder)
    part, chance = Part(folder), random.Random(2)
    _, recovery_ms = timed_ms(part.begin, batch + 1)
    wanted = key(chance.randrange(keys)) if keys else key(0)
    state, first_ms = timed_ms(part.ledger.state.of, OPERATOR, wanted)
    assert len(state) == STATE_BYTES
    recovered_mb = memory_mb()["RssAnon"]
    wanted = [key(chance.randrange(keys)) for _ in range(READS if keys else 0)]
    for _ in range(2):  # the second time it is all in the cache
        began_s = time.perf_counter()
        for name in wanted:
            part.ledger.state.of(OPERATOR, name)
        reads_s = time.perf_counter() - began_s
    memory = memory_mb()
    part.files.close()
    return {
        "recovery_ms": recovery_ms + first_ms,
        "read_us": 1e6 * reads_s / max(1, len(wanted)),
        "own_mb": memory["RssAnon"],
        "cache_mb": memory["RssFile"],
        "recovered_mb": recovered_mb,
    }


def log_of(folder, records, changed, chance):
    """Log so many records since a commit, as of a host that is killed then."""
    part = Part(folder)
    part.begin(0)
    for number in range(records):
        part.count(0, number % changed, chance)
    part.files.close()
    return sum(path.stat().st_size for path in (folder / "log").iterdir())


def evict(folder):
    """Let the system forget what it has in its cache of the files in *folder*."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def memory_mb():
    """Return the memory of this process by kind."""
    told = Path("/proc/self/status").read_text()
    return {name: int(kb) / 1e3 for name, kb in re.findall(r"(\w+):\s+(\d+) kB", told)}


def alone(call, *arguments):
    """Return what a call returns in a new process: memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(call, *arguments).result()


def by_keys(folder, keys, changed):
    """Return all figures of a state with so many keys."""
    chance = random.Random(keys)
    batch, fill_ms = timed_ms(alone, filled, folder, keys, chance)
    cost, last = alone(cuts, folder, batch, keys, changed, chance)
    store = folder / "state" / "store" / "data.mdb"
    store_mb = store.stat().st_blocks * 512 / 1e6
    found = alone(recovered, folder, last, keys)
    del found["recovered_mb"]
    return {"keys": keys, "fill_s": fill_ms / 1e3, "store_mb": store_mb, **cost, **found}


def by_log(folder, records, changed):
    """Return how long recovery takes with a log of so many records."""
    log_bytes = alone(log_of, folder, records, changed, random.Random(1))
    found = alone(recovered, folder, -1)
    return {
        "logged": records,
        "log_mb": log_bytes / 1e6,
        "recovery_ms": found["recovery_ms"],
        "own_mb": found["recovered_mb"],
    }


def show(rows):
    """Print figures as a table."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        digits = (f"{v:,}" if isinstance(v, int) else f"{v:,.1f}" for v in row.values())
        table.add_row(*digits)
    Console(width=160).print(table)


def main():
    """Measure each size in a folder of its own, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes, logs = (10_000, 100_000, 1_000_000, 10_000_000), (10_000, 100_000, 500_000)
    parser.add_argument("--keys", type=int, nargs="*", default=sizes)
    parser.add_argument("--logged", type=int, nargs="*", default=logs, help="records in a log")
    parser.add_argument("--changed", type=int, default=10_000, help="keys in each batch")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = {"keys": [], "logged": []}
    for name, measured in (("keys", by_keys), ("logged", by_log)):
        for size in getattr(asked, name):
            with tempfile.TemporaryDirectory(prefix="state-size-") as temporary:
                found[name].append(measured(Path(temporary) / "part", size, asked.changed))
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    for rows in found.values():
        if rows:
            show(rows)


if __name__ == "__main__":
    main()

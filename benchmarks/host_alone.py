"""A host without Spark: records through three operators, and cuts of what is open.

    python benchmarks/host_alone.py [--records 20000]

Prints the records per second that a host with one processor for each operator of `chain.py`
carries, its own CPU time for a record and for one that comes alone, every millisecond; what
finding the most frequent key adds to it for an operator that reads by key, and how long cuts
of many open records take.
"""

import argparse
import socket
import tempfile
import threading
import time
from pathlib import Path
from random import Random

import msgspec
import psutil

from sojourn.app.loading import load
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.counting import HotKeyCounter
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import Grant, RelayHello, Results, Row, RowsMessage, ToRelay

TOPIC, TOGETHER = "chain.source", 64
EVERY_S = 0.001
OPEN, PAYLOAD = (100, 10_000, 100_000), b'{"word":"%s"}' % (b"x" * 180)


def row(number):
    """Return a row as a relay passes it on."""
    name, now_s = f"{TOPIC}@mark/0/{number}", time.time()
    record = Record(
        name, b'{"seed":%d}' % number, "source", root=name, birth_s=now_s, written_s=now_s
    )
    return Row((TOPIC, 0), number, record)


class Relay:
    """Passes rows on as far as there is credit, and counts what comes back.

    *rows* makes so many of them, from a first number on.
    """

    def __init__(self, path, rows=None):
        self._rows = rows or (
            lambda first, some: RowsMessage([row(first + n) for n in range(some)])
        )
        self._host = socket.socket(socket.AF_UNIX)
        self._host.connect(str(path))
        self._host.sendall(framed(RelayHello("run", 0, 0)))
        self._credit, self._changed, self._came = 0, threading.Condition(), 0

    def carry(self, number, *, alone=False):
        """Return when *number* records have come back, which were sent together or *alone*."""
        reading = threading.Thread(target=self._read, args=(number,))
        reading.start()
        sent, began_s, together = 0, time.perf_counter(), 1 if alone else TOGETHER
        while sent < number:
            if alone:
                time.sleep(max(0.0, began_s + sent * EVERY_S - time.perf_counter()))
            with self._changed:
                self._changed.wait_for(lambda: self._credit > 0)
                some = min(self._credit, together, number - sent)
                self._credit -= some
            self._host.sendall(framed(self._rows(sent, some)))
            sent += some
        reading.join()
        self._host.close()

    def _read(self, number):
        frames, decode = Frames(), msgspec.msgpack.Decoder(ToRelay).decode
        while self._came < number:
            for message in map(decode, frames.fed(self._host.recv(1 << 16))):
                if isinstance(message, Grant):
                    with self._changed:
                        self._credit += message.number
                        self._changed.notify()
                elif isinstance(message, Results):
                    self._came += len(message.records)


def carried(folder, number, *, alone=False):
    """Return records per second, and the host's CPU seconds for one."""
    layout, state = Layout(load("chain:app"), "chain:app"), Checkpoints(folder / "state")
    (part,) = layout.parts
    with Controller(folder / "hosts", tasks=lambda _stage: 1) as controller:
        processors = dict.fromkeys(layout.functions, 1)
        path = controller.start(layout.host(part, folder, state, processors))
        host = psutil.Process(controller.pid("first"))
        before, began_s = host.cpu_times(), time.perf_counter()
        Relay(path).carry(number, alone=alone)
        lasted_s, after = time.perf_counter() - began_s, host.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return number / lasted_s, used_s / number


def cut_of(folder, number):
    """Return the bytes of a cut, and the seconds that it takes to save and to load it."""
    names = [f"{TOPIC}@mark/0/{n}" for n in range(number)]
    records = tuple(
        OpenRecord(Root((TOPIC, 0), n), "third", Record(name, PAYLOAD, "second", root=name), n)
        for n, name in enumerate(names)
    )
    files, cut = CutFiles(folder / str(number)), CutId(1, 1)
    began_s = time.perf_counter()
    files.save(Cut(id=cut, taken={(TOPIC, 0): number}, open=records))
    saved_s = time.perf_counter()
    files.load(cut)
    size = sum(path.stat().st_size for path in (folder / str(number) / "cuts").iterdir())
    return size, saved_s - began_s, time.perf_counter() - saved_s


def key_counting_s(records=500_000):
    """Return the time that counting a key takes, of words as frequent as in a language."""
    weights = [1 / rank for rank in range(1, 50_001)]
    keys = [f'"{word}"' for word in Random(1).choices(range(50_000), weights, k=records)]
    hot, began_s = HotKeyCounter(), time.perf_counter()
    for key in keys:
        hot.count(key)
    return (time.perf_counter() - began_s) / records


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        per_s, cpu_s = carried(folder, asked.records)
        print(f"{per_s:.0f} records per s, {1e6 * cpu_s:.0f} µs of the host for each")
        _, alone_s = carried(folder / "alone", asked.records // 4, alone=True)
        print(f"{1e6 * alone_s:.0f} µs of the host for one that comes alone")
        print(f"{1e6 * key_counting_s():.2f} µs more to find the most frequent key")
        for number in OPEN:
            size, save_s, load_s = cut_of(folder, number)
            print(
                f"{number:7} open: {size / 1e6:6.2f} MB, saved in {1e3 * save_s:.0f} ms, "
                f"loaded in {1e3 * load_s:.0f} ms"
            )


if __name__ == "__main__":
    main()

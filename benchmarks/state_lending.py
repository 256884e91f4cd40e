"""What it costs to lend a key's state with each record, and what a copy kept there would save.

    python benchmarks/state_lending.py [--records 4000] [--rounds 3]

All records have one key, so they are served one at a time by an operator that counts; its state
has a text of so many bytes beside the number. A real host with one processor carries them. A
processor that keeps a copy would not be sent the state, but would have to be told that its copy
is the last; what it changes goes back in any case. So at most the way of the state to the
processor is saved: that is measured by passing as many bytes to another process and reading
them there, with and without a state.
"""

import argparse
import os
import socket
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
import psutil

from host_alone import Relay
from sojourn.app.loading import load
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.processor import Assignment
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Row, RowsMessage

SIZES = (10, 1_000, 10_000, 100_000)
TOPIC, KEY = "lending.numbers", '["hot"]'
_decode = msgspec.msgpack.Decoder(Assignment).decode


def row(number, operator):
    """Return a row as a relay passes it on, for one operator."""
    name, now_s = f"{TOPIC}@mark/0/{number}", time.time()
    record = Record(
        name, b'{"number":%d,"key":"hot"}' % number, "numbers", root=name, written_s=now_s
    )
    return Row((TOPIC, 0), number, record, {operator: KEY}, only=operator)


def carried_s(operator, size, number):
    """Return the time that a record takes, and the CPU time of the host for it."""
    os.environ["LENDING_BYTES"] = str(size)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        layout = Layout(load("lending_app:app"), "lending_app:app")
        part = layout.part_of[operator].name
        with Controller(folder / "hosts", tasks=lambda _stage: 1) as controller:
            processors = dict.fromkeys(layout.functions, 1)
            state = Checkpoints(folder / "state")
            path = controller.start(layout.host(part, folder, state, processors))
            host = psutil.Process(controller.pid(operator))
            relay = Relay(path, rows=lambda first, some: _rows(first, some, operator))
            before, began_s = host.cpu_times(), time.perf_counter()
            relay.carry(number)
            lasted_s, after = time.perf_counter() - began_s, host.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return lasted_s / number, used_s / number


def _rows(first, some, operator):
    return RowsMessage([row(first + n, operator) for n in range(some)])


def way_s(size, number):
    """Return the time that records take to another process, with a state of *size* or none."""
    record = row(0, "counting").record
    states = {KEY: b"x" * size} if size else None
    ours, theirs = socket.socketpair()
    if (pid := os.fork()) == 0:
        ours.close()
        frames = Frames()
        while some := theirs.recv(1 << 16):
            for body in frames.fed(some):
                _decode(body)
                theirs.sendall(b".")
        os._exit(0)
    theirs.close()
    began_s = time.perf_counter()
    for _ in range(number):
        ours.sendall(framed(Assignment([record], states)))
        ours.recv(1)
    lasted_s = time.perf_counter() - began_s
    ours.close()
    os.waitpid(pid, 0)
    return lasted_s / number


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = range(asked.rounds)
    plain = [carried_s("plain", 0, asked.records) for _ in rounds]
    bare_s = min(way_s(0, asked.records) for _ in rounds)
    print(f"without a state {1e6 * median(s for s, _ in plain):6.0f} µs per record")
    for size in SIZES:
        took = [carried_s("counting", size, asked.records) for _ in rounds]
        saved_s = min(way_s(size, asked.records) for _ in rounds) - bare_s
        total_s, host_s = median(s for s, _ in took), median(s for _, s in took)
        print(
            f"{size:6} bytes    {1e6 * total_s:6.0f} µs per record, {1e6 * host_s:.0f} of the "
            f"host; a copy would save {1e6 * saved_s:.0f} µs, {100 * saved_s / total_s:.0f} %"
        )


if __name__ == "__main__":
    main()

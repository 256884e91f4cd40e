"""What encryption between machines costs: a host, an agent and a relay, without Spark.

    python benchmarks/encryption.py [--records 5000] [--rounds 3]

Records go by TCP from a relay to a host, from there to processors of an agent, and back the
same way; all on this machine, plain and encrypted in turn. Prints, of the median round each,
records per second, CPU time of the host for a record, and how long a record takes that is
alone on its way.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from sojourn.app.loading import load
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.handshake import RunIdentity
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Grant, RelayHello, Results, Row, RowsMessage, ToRelay

TOPIC, HERE, NODE, TOGETHER = "chain.source", "127.0.0.1", "executor-1", 64
ALONE = 200


class Relay:
    """Passes rows on as far as there is credit, and counts what comes back."""

    def __init__(self, address):
        self._host = address.connect()
        self._host.sendall(framed(RelayHello("run", 0, 0)))
        self._changed, self._credit, self._sent, self._came = threading.Condition(), 0, 0, 0
        threading.Thread(target=self._read, daemon=True).start()

    def carry(self, number):
        """Return when *number* more records have come back."""
        until = self._sent + number
        while self._sent < until:
            with self._changed:
                self._changed.wait_for(lambda: self._credit > 0)
                some = min(self._credit, TOGETHER, until - self._sent)
                self._credit -= some
            rows = [row(self._sent + n) for n in range(some)]
            self._host.sendall(framed(RowsMessage(rows)))
            self._sent += some
        with self._changed:
            self._changed.wait_for(lambda: self._came >= until)

    def close(self):
        """Leave the host."""
        self._host.close()

    def _read(self):
        frames, decode = Frames(), msgspec.msgpack.Decoder(ToRelay).decode
        try:
            while some := self._host.recv(1 << 16):
                for message in map(decode, frames.fed(some)):
                    self._heard(message)
        except OSError:
            return  # it was closed

    def _heard(self, message):
        with self._changed:
            if isinstance(message, Grant):
                self._credit += message.number
            elif isinstance(message, Results):
                self._came += len(message.records)
            self._changed.notify_all()


def row(number):
    """Return a row as a relay passes it on."""
    name, now_s = f"{TOPIC}@mark/0/{number}", time.time()
    payload = b'{"seed":%d}' % number
    record = Record(name, payload, "source", root=name, birth_s=now_s, written_s=now_s)
    return Row((TOPIC, 0), number, record)


@contextmanager
def agent_of(controller, part, folder):
    """Run the agent of a node."""
    told = {
        "executor": NODE.removeprefix("executor-"),
        "hosts": {part: [HERE, controller.launcher.port(part)]},
        "secret": controller.launcher.secret.hex(),
        "certificate": controller.launcher.certificate,
        "logs": str(folder / "logs"),
    }
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-m", "sojourn.spark.agent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    ) as agent:
        agent.stdin.write(json.dumps(told).encode())
        agent.stdin.close()
        try:
            yield
        finally:
            agent.kill()


def measured(folder, number, identity):
    """Return records per second, the host's CPU seconds for one, and seconds of one alone."""
    layout, state = Layout(load("chain:app"), "chain:app"), Checkpoints(folder / "state")
    (part,) = layout.parts
    with Controller(
        folder / "hosts", tasks=lambda _stage: 1, binds=HERE, identity=identity
    ) as controller:
        processors = dict.fromkeys(layout.functions, 1)
        controller.launch(layout.host(part, folder, state, processors))
        with agent_of(controller, part, folder):
            for name in layout.functions:
                controller.place(name, {NODE: 1})
            while any(controller.placed(name) != {NODE: 1} for name in layout.functions):
                time.sleep(0.01)
            relay = Relay(
                HostAddress(
                    machine=HERE,
                    port=controller.launcher.port(part),
                    secret=controller.launcher.secret,
                    certificate=controller.launcher.certificate,
                )
            )
            relay.carry(ALONE)  # all is imported, and warm
            host = psutil.Process(controller.pid("first"))
            before, began_s = host.cpu_times(), time.perf_counter()
            relay.carry(number)
            lasted_s, after = time.perf_counter() - began_s, host.cpu_times()
            alone_s = []
            for _ in range(ALONE):
                time.sleep(0.005)  # so that nothing waits to leave together with it
                sent_s = time.perf_counter()
                relay.carry(1)
                alone_s.append(time.perf_counter() - sent_s)
            relay.close()
    used_s = after.user + after.system - before.user - before.system
    return number / lasted_s, used_s / number, statistics.median(alone_s)


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    figures = {"plain": [], "encrypted": []}
    for turn in range(asked.rounds):
        for way, found in figures.items():
            with tempfile.TemporaryDirectory() as temporary:
                identity = RunIdentity.new() if way == "encrypted" else None
                found.append(measured(Path(temporary), asked.records, identity))
            print(f"round {turn + 1}, {way}: {found[-1][0]:.0f} records per s", file=sys.stderr)
    for way, found in figures.items():
        per_s, cpu_s, alone_s = (statistics.median(each) for each in zip(*found, strict=True))
        print(
            f"{way:9}: {per_s:6.0f} records per s, {1e6 * cpu_s:4.0f} µs of the host for each, "
            f"{1e3 * alone_s:.2f} ms for a record alone"
        )


if __name__ == "__main__":
    main()

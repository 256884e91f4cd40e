"""A host without Spark whose processors are beside it, or on nodes at a distance.

Nodes are agents on this machine, each connected through a forwarder that delays what passes.
"""

import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import psutil

from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.host_settings import HostSettings, OperatorSettings
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Grant, RelayHello, Results, Row, RowsMessage, ToRelay
from sojourn_trial.cluster.delay_forwarder import DelayForwarder

ADDRESS, PART, OPERATOR = "127.0.0.1", "part", "sleep"
PATIENCE_S = 60


def _forward(port, delay_s, told):
    async def forward():
        async with DelayForwarder((ADDRESS, port), delay_s=delay_s) as forwarder:
            told.send(forwarder.address[1])
            await asyncio.Event().wait()

    asyncio.run(forward())


class Cluster:
    """A host in a *folder*, with processors *on* nodes, or so many beside it.

    Leaving it ends all processes.
    """

    def __init__(self, folder, on, *, delay_s=0.0, nodes=()):
        self._folder, self._on, self._delay_s = folder, on, delay_s
        self._nodes = nodes or (() if isinstance(on, int) else tuple(on))
        self._agents, self._forwarders = [], []
        self.controller = Controller(folder / "all", tasks=lambda _stage: 1, binds=ADDRESS)

    def __enter__(self):
        self.controller.__enter__()
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception):
        self.controller.__exit__()
        for process in (*self._agents, *self._forwarders):
            process.kill()
        for agent in self._agents:
            agent.wait()
        for forwarder in self._forwarders:
            forwarder.join()

    def _start(self):
        beside = isinstance(self._on, int)
        operator = OperatorSettings(
            job="sleeper:sleeper",
            processors=self._on if beside else 1,
            on=None if beside else self._on,
        )
        self.controller.launch(
            HostSettings(
                name=PART,
                operators={OPERATOR: operator},
                readers={"in": (OPERATOR,)},
                leaving=("out",),
                folder=self._folder / "host",
                cuts=self._folder / "cuts",
            )
        )
        for node in self._nodes:
            self._agents.append(self._agent(node))
        if beside:
            self.controller.await_running(OPERATOR, self._on)
        else:
            self.await_placed(self._on)

    def _agent(self, node):
        """Start the agent of a node behind a forwarder of its own, as a task of Spark does."""
        forking = multiprocessing.get_context("spawn")
        told, tell = forking.Pipe(duplex=False)
        port = self.controller.launcher.port(PART)
        forwarder = forking.Process(target=_forward, args=(port, self._delay_s, tell))
        forwarder.daemon = True
        forwarder.start()
        self._forwarders.append(forwarder)
        settings = {
            "executor": node.removeprefix("executor-"),
            "hosts": {PART: [ADDRESS, told.recv()]},
            "secret": self.controller.launcher.secret.hex(),
            "watch": os.getpid(),
            "logs": str(self._folder / node),
        }
        agent = subprocess.Popen(
            [sys.executable, "-m", "sojourn.spark.agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        agent.stdin.write(json.dumps(settings).encode())
        agent.stdin.close()
        with agent.stdout:
            if agent.stdout.readline() != b"ready\n":
                raise RuntimeError(f"the agent of {node} did not start")
        return agent

    def await_placed(self, on):
        """Return when processors are on nodes as told."""
        until_s = time.monotonic() + PATIENCE_S
        while self.controller.placed(OPERATOR) != on:
            if time.monotonic() > until_s:
                raise TimeoutError(f"processors are on {self.controller.placed(OPERATOR)}")
            time.sleep(0.002)

    def move(self, on):
        """Have the processors on other nodes, and return the seconds that it took."""
        began_s = time.monotonic()
        self.controller.place(OPERATOR, on)
        self.await_placed(on)
        return time.monotonic() - began_s

    def relay(self):
        """Return who brings records."""
        return Relay(self._folder / "host" / "relay.sock")

    def counts(self):
        """Return records done and the sum of their waits, since this was last asked."""
        self.controller.tallies()
        self.controller.ask()
        until_s = time.monotonic() + PATIENCE_S
        while not (told := self.controller.tallies()):
            if time.monotonic() > until_s:
                raise TimeoutError("the host does not report")
            time.sleep(0.005)
        each = [c for t in told[PART] for c in t.operators[OPERATOR].processors]
        return sum(c.served for c in each), sum(c.wait_s for c in each)

    def cpu_s(self):
        """Return the CPU time of the host, and of all agents."""
        host = psutil.Process(self.controller.pid(OPERATOR))
        agents = [psutil.Process(agent.pid) for agent in self._agents]
        return _used_s(host), sum(map(_used_s, agents))


def _used_s(process):
    times = process.cpu_times()
    return times.user + times.system


class Relay:
    """Brings records as far as there is credit, and hears results.

    So many records are *sent*, and *results* heard; *came* is when the first of each came.
    """

    def __init__(self, path: Path):
        self._host = socket.socket(socket.AF_UNIX)
        self._host.connect(str(path))
        self._host.sendall(framed(RelayHello("run", 0, 0)))
        self._credit, self._changed = 0, threading.Condition()
        self.sent, self.results, self.came = 0, 0, {}
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self._host.shutdown(socket.SHUT_RDWR)
        self._host.close()

    def bring(self, services_s, *, at_s=None):
        """Bring records that take so long, each not before its time; return when it began."""
        began_s = time.time()
        arrivals_s = [0.0] * len(services_s) if at_s is None else at_s
        for after_s, service_s in zip(arrivals_s, services_s, strict=True):
            if (early_s := began_s + after_s - time.time()) > 0:
                time.sleep(early_s)
            self._bring(service_s, began_s + after_s)
        return began_s

    def _bring(self, service_s, written_s):
        with self._changed:
            self._changed.wait_for(lambda: self._credit > 0)
            self._credit -= 1
        name = f"in/0/{self.sent}"
        payload = repr(service_s).encode()
        record = Record(name, payload, "in", root=name, birth_s=written_s, written_s=written_s)
        self._host.sendall(framed(RowsMessage([Row(("in", 0), self.sent, record)])))
        self.sent += 1

    def await_all(self):
        """Return when as many results have come as records were brought."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.results >= self.sent, PATIENCE_S):
                raise TimeoutError(f"{self.results} results of {self.sent} records")

    def _read(self):
        frames, decode = Frames(), msgspec.msgpack.Decoder(ToRelay).decode
        while some := self._some():
            now_s = time.time()
            for message in map(decode, frames.fed(some)):
                with self._changed:
                    if isinstance(message, Grant):
                        self._credit += message.number
                    elif isinstance(message, Results):
                        self.results += len(message.records)
                        for _, root, _ in message.records:
                            self.came.setdefault(root.offset, now_s)
                    self._changed.notify()

    def _some(self):
        try:
            return self._host.recv(1 << 16)
        except OSError:
            return b""

"""Processors on other nodes: a real host, real agents, connections by TCP."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from host.relaying import Query, route_of
from sojourn.errors import EngineError
from sojourn.host.node.authentication import introduce_socket
from sojourn.host.report.controller import Controller
from sojourn.host.server import HostSettings
from sojourn.host.station import OperatorSettings
from sojourn.spark.query.host_address import HostAddress

DEADLINE_S = 60
HERE = "127.0.0.1"


class Cluster:
    """A host that listens, and agents of nodes."""

    def __init__(self, folder):
        self.folder, self.agents = folder, []
        self.controller = Controller(folder / "all", tasks=lambda _stage: 1, binds=HERE)

    def start(self, operator="where", **fields):
        settings = OperatorSettings(
            job="sojourn.host.process.operator_job:of_application",
            argument=f"unit.host.application:app {operator}",
            **fields,
        )
        self.controller.launch(
            HostSettings(
                name="part",
                operators={operator: settings},
                readers={"lines": (operator,)},
                leaving=(operator,),
                folder=self.folder / "host",
                cuts=self.folder / "cuts",
            )
        )
        self.operator = operator
        return Query(self.controller, self.address(), route_of(operator))

    def address(self, secret=None):
        port = self.controller.port("part")
        secret = self.controller.secret if secret is None else secret
        return HostAddress(machine=HERE, port=port, secret=secret)

    def agent(self, node, *, watch=0, secret=None):
        """Start the agent of a node, as a task of Spark does."""
        told = {
            "executor": node.removeprefix("executor-"),
            "hosts": {"part": [HERE, self.controller.port("part")]},
            "secret": (secret or self.controller.secret).hex(),
            "watch": watch,
            "logs": str(self.folder / node),
        }
        agent = subprocess.Popen(
            [sys.executable, "-m", "sojourn.host.node"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(["tests", *sys.path])},
        )
        self.agents.append(agent)
        agent.stdin.write(json.dumps(told).encode())
        agent.stdin.close()
        with agent.stdout:
            assert agent.stdout.readline() == b"ready\n"
        return agent

    def until(self, found):
        until_s = time.monotonic() + DEADLINE_S
        while not found():
            assert time.monotonic() < until_s
            time.sleep(0.02)

    def runs(self, **on):
        named = {name.replace("_", "-"): number for name, number in on.items()}
        self.until(lambda: self.controller.placed(self.operator) == named)


@contextmanager
def _cluster(folder):
    made = Cluster(folder)
    with made.controller:
        try:
            yield made
        finally:
            for agent in made.agents:
                agent.kill()
                agent.wait()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with _cluster(tmp_path) as made:
        yield made


def _lines(number, line="word"):
    return [json.dumps({"line": f"{line}-{n}"}).encode() for n in range(number)]


def _words(rows):
    return sorted(json.loads(row["value"])["word"] for row in rows)


def _pids(rows):
    return {json.loads(row["value"])["pid"] for row in rows}


def test_records_are_worked_on_where_processors_are(cluster):
    query = cluster.start(on={"executor-1": 2, "executor-2": 1})
    cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.runs(executor_1=2, executor_2=1)
    assert cluster.controller.nodes().keys() == {"executor-1", "executor-2"}
    rows = query.results(*_lines(100))
    assert _words(rows) == sorted(f"word-{n}" for n in range(100))
    assert len(_pids(rows)) > 1
    cluster.until(lambda: len(_in_memory(query)) == 3)


def test_a_node_tells_where_its_logs_are_and_a_host_what_memory_is_used_there(cluster):
    query = cluster.start(on={"executor-1": 2, "executor-2": 1})
    cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.runs(executor_1=2, executor_2=1)
    for name, node in cluster.controller.told_nodes().items():
        assert (node.machine, node.logs) == (socket.gethostname(), str(cluster.folder / name))
        assert (cluster.folder / name / "where.log").exists()

    def memory():
        tally = query.tally().operators["where"]
        whole = sum(counts.memory_bytes for counts in tally.processors)
        return tally.state.memory if sum(tally.state.memory.values()) == whole else {}

    cluster.until(lambda: memory().keys() == {"executor-1", "executor-2"})


def _in_memory(query):
    processors = query.tally().operators["where"].processors
    return [counts for counts in processors if counts.memory_bytes > 1e6]


def test_what_a_dead_node_had_is_done_elsewhere_and_once(cluster):
    query = cluster.start(on={"executor-1": 2, "executor-2": 2})
    cluster.agent("executor-1")
    doomed = cluster.agent("executor-2")
    cluster.runs(executor_1=2, executor_2=2)
    threading.Timer(0.5, doomed.kill).start()
    rows = query.results(*_lines(300, "slow"))
    assert _words(rows) == sorted(f"slow-{n}" for n in range(300))
    cluster.runs(executor_1=2)
    assert cluster.controller.nodes().keys() == {"executor-1"}
    cluster.agent("executor-2")  # it comes back
    cluster.runs(executor_1=2, executor_2=2)
    assert query.state().open == 0


def test_processors_move_while_records_come(cluster):
    query = cluster.start(on={"executor-1": 3})
    cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.runs(executor_1=3)
    seen = []

    def move():
        cluster.controller.place("where", {"executor-2": 3})
        while cluster.controller.placed("where") != {"executor-2": 3}:
            seen.append(sum(cluster.controller.placed("where").values()))
            time.sleep(0.01)

    moving = threading.Timer(0.3, move)
    moving.start()
    rows = query.results(*_lines(300, "slow"))
    moving.join()
    assert _words(rows) == sorted(f"slow-{n}" for n in range(300))
    assert min(seen, default=3) >= 3  # nobody went before another had come


def test_a_node_that_is_not_there_is_named(cluster):
    query = cluster.start(on={"executor-1": 1, "executor-7": 1})
    cluster.agent("executor-1")
    cluster.controller.await_running("where", 2)  # as many as there can be
    assert query.tally().operators["where"].state.missing == "node executor-7 is not there"


def test_an_agent_ends_with_the_process_that_it_watches(cluster):
    cluster.start(on={"executor-1": 2})
    watched = subprocess.Popen(["sleep", "600"])
    agent = cluster.agent("executor-1", watch=watched.pid)
    cluster.runs(executor_1=2)
    watched.send_signal(signal.SIGKILL)  # and it stays a zombie until it is waited for
    agent.wait(DEADLINE_S)
    watched.wait()
    cluster.runs()


def test_a_host_that_dies_finds_its_agents_again(cluster):
    query = cluster.start(on={"executor-1": 2})
    cluster.agent("executor-1")
    cluster.runs(executor_1=2)
    assert len(query.results(*_lines(5))) == 5
    os.kill(cluster.controller.pid("where"), signal.SIGKILL)
    cluster.until(cluster.controller.ended)
    query.controller = cluster.controller
    cluster.start(on={"executor-1": 2})
    cluster.runs(executor_1=2)
    assert len(query.results(*_lines(5))) == 5


@pytest.mark.parametrize("purpose", ["agent", "relay"])
def test_who_does_not_know_the_secret_gets_nowhere(cluster, purpose):
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    port = cluster.controller.port("part")
    with socket.create_connection((HERE, port)) as stranger, pytest.raises(EngineError):
        introduce_socket(stranger, b"not the secret", purpose)
    silent = [socket.create_connection((HERE, port)) for _ in range(100)]
    noisy = socket.create_connection((HERE, port))
    noisy.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    try:  # nothing stalls
        assert len(query.results(*_lines(20))) == 20
    finally:
        for each in (*silent, noisy):
            each.close()
    assert cluster.controller.nodes().keys() == {"executor-1"}


def test_a_stranger_in_place_of_a_host_learns_nothing():
    with socket.create_server((HERE, 0)) as server:
        address = HostAddress(machine=HERE, port=server.getsockname()[1], secret=b"secret")
        heard = []

        def pose():
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"sojourn1" + bytes(32))
                heard.append(peer.recv(1000))
                peer.sendall(bytes(32))

        posing = threading.Thread(target=pose)
        posing.start()
        with pytest.raises(EngineError, match="does not know the secret"):
            address.connect()
        posing.join()
    assert b"secret" not in heard[0]

"""Processors on other nodes: a real host, real agents, connections by TCP."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from itertools import pairwise

import pytest

from host.clustering import DEADLINE_S, HERE, cluster_in, lines_of, pids_of, words_of
from host.relaying import by_line, headers_of, route_of
from sojourn.errors import EngineError
from sojourn.spark.wire.handshake import introduce_socket
from sojourn.spark.wire.host_address import HostAddress


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with cluster_in(tmp_path) as made:
        yield made


def test_records_are_worked_on_where_processors_are(cluster):
    query = cluster.start(on={"executor-1": 2, "executor-2": 1})
    cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.runs(executor_1=2, executor_2=1)
    assert cluster.controller.nodes().keys() == {"executor-1", "executor-2"}
    rows = query.results(*lines_of(100))
    assert words_of(rows) == sorted(f"word-{n}" for n in range(100))
    assert len(pids_of(rows)) > 1
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


def test_logs_on_a_node_do_not_grow_for_ever(cluster):
    logs = cluster.folder / "executor-1"
    logs.mkdir()
    (logs / "where.log").write_text("old line\n" * (2 << 20))
    cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    cluster.until(lambda: (logs / "where.log").stat().st_size < 1 << 20)
    assert (logs / "where.log.1").stat().st_size == 9 * (2 << 20)


def _in_memory(query):
    processors = query.tally().operators["where"].processors
    return [counts for counts in processors if counts.memory_bytes > 1e6]


def test_what_a_dead_node_had_is_done_elsewhere_and_once(cluster):
    query = cluster.start(on={"executor-1": 2, "executor-2": 2})
    cluster.agent("executor-1")
    doomed = cluster.agent("executor-2")
    cluster.runs(executor_1=2, executor_2=2)
    threading.Timer(0.5, doomed.kill).start()
    rows = query.results(*lines_of(300, "slow"))
    assert words_of(rows) == sorted(f"slow-{n}" for n in range(300))
    cluster.runs(executor_1=4)  # nobody has to decide that
    assert cluster.controller.nodes().keys() == {"executor-1"}
    assert cluster.controller.lost_nodes().keys() == {"executor-2"}
    cluster.agent("executor-2")  # it comes back
    cluster.runs(executor_1=2, executor_2=2)
    assert query.state().open == 0


def test_records_of_a_key_are_served_in_order_on_any_node_although_one_dies(cluster):
    query = cluster.start("timed", on={"executor-1": 2, "executor-2": 2, "executor-3": 2})
    agents = [cluster.agent(f"executor-{number}") for number in (1, 2, 3)]
    cluster.runs(executor_1=2, executor_2=2, executor_3=2)
    threading.Timer(0.25, agents[1].kill).start()
    keys = [f"key-{number % 4}" for number in range(200)]
    lines = [json.dumps({"line": key}).encode() for key in keys]
    rows = query.results(*lines, route=route_of("timed", keyed=by_line("timed")))
    cluster.runs(executor_1=3, executor_3=3)
    served = {}
    for row in rows:
        offset = int(headers_of(row)["sojourn-root"].rpartition(b"/")[2])
        done = json.loads(row["value"])
        served.setdefault(done["line"], {})[offset] = (done["began"], done["ended"])
    assert {key: sorted(times) for key, times in served.items()} == {
        f"key-{number}": list(range(number, 200, 4)) for number in range(4)
    }
    for times in served.values():
        in_order = [times[offset] for offset in sorted(times)]
        assert all(ended <= began for (_, ended), (began, _) in pairwise(in_order))


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
    rows = query.results(*lines_of(300, "slow"))
    moving.join()
    assert words_of(rows) == sorted(f"slow-{n}" for n in range(300))
    assert min(seen, default=3) >= 3  # nobody went before another had come


def test_a_node_that_is_not_there_is_named(cluster):
    query = cluster.start(on={"executor-1": 1, "executor-7": 1})
    cluster.agent("executor-1")
    cluster.controller.await_running("where", 2)  # as many as there can be
    assert query.tally().operators["where"].state.missing == "node executor-7 is not connected"


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
    assert len(query.results(*lines_of(5))) == 5
    os.kill(cluster.controller.pid("where"), signal.SIGKILL)
    cluster.until(cluster.controller.ended)
    query.controller = cluster.controller
    cluster.start(on={"executor-1": 2})
    cluster.runs(executor_1=2)
    assert len(query.results(*lines_of(5))) == 5
    assert not cluster.controller.lost_nodes()  # its host was


def test_a_node_that_is_silent_is_lost_and_told_apart_from_one_that_is_gone(cluster):
    """Its machine has vanished: no connection ends, and Spark still sends tasks there."""
    query = cluster.start(relay_timeout_s=3.0, on={"executor-1": 1, "executor-2": 1})
    cluster.agent("executor-1")
    silent = cluster.agent("executor-2")
    gone = cluster.agent("executor-3")
    cluster.runs(executor_1=1, executor_2=1)
    cluster.until(lambda: "executor-3" in cluster.controller.nodes())
    gone.kill()
    silent.send_signal(signal.SIGSTOP)
    cluster.until(lambda: cluster.controller.nodes().keys() == {"executor-1"})
    assert cluster.controller.lost_nodes().keys() == {"executor-2", "executor-3"}
    assert cluster.controller.silent_nodes().keys() == {"executor-2"}
    assert len(query.results(*lines_of(5))) == 5


def test_a_host_that_was_suspended_loses_no_node(cluster):
    """It has heard nobody for that time; what agents said is in its buffers."""
    query = cluster.start(relay_timeout_s=3.0, on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    host = cluster.controller.pid("where")
    os.kill(host, signal.SIGSTOP)
    try:
        time.sleep(6.0)  # the time is the point
    finally:
        os.kill(host, signal.SIGCONT)
    assert len(query.results(*lines_of(5))) == 5
    assert not cluster.controller.lost_nodes()


@pytest.mark.parametrize("purpose", ["agent", "relay"])
def test_who_does_not_know_the_secret_gets_nowhere(cluster, purpose):
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    port = cluster.controller.launcher.port("part")
    with socket.create_connection((HERE, port)) as stranger, pytest.raises(EngineError):
        introduce_socket(stranger, b"not the secret", purpose)
    silent = [socket.create_connection((HERE, port)) for _ in range(100)]
    noisy = socket.create_connection((HERE, port))
    noisy.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    try:  # nothing stalls
        assert len(query.results(*lines_of(20))) == 20
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

"""A stranger in a network of its own tries every port of the host's machine and of a node."""

import json
import os
import subprocess
import sys
import threading
from secrets import token_hex

import psutil
import pytest

from host.clustering import DEADLINE_S, cluster_in, lines_of, words_of
from host.stranger import GREETING
from processes import started
from sojourn.errors import EngineError
from sojourn.spark.wire.handshake import RunIdentity
from sojourn_trial.cluster.trial_network import Wire, claim_network, why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NODE, STRANGER = 1, 2


@pytest.fixture
def network():
    if reason := why_not():
        pytest.skip(reason)
    try:
        made = claim_network(token_hex(8))
        for worker in (NODE, STRANGER):
            made.connect(worker, Wire())
    except EngineError as error:
        pytest.skip(str(error))
    yield made
    made.remove((NODE, STRANGER))


class Flow:
    """Records that go through a *query* all the time, in a thread."""

    def __init__(self, query):
        self._query, self._stopping, self.done, self.wrong = query, threading.Event(), 0, []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self._stopping.set()
        self._thread.join()

    def _run(self):
        wanted = sorted(f"word-{n}" for n in range(50))
        while not self._stopping.is_set():
            if words_of(self._query.results(*lines_of(50))) != wanted:
                self.wrong.append(self.done)
            self.done += 1


def stranger(network, *addresses):
    """Run the stranger in its namespace."""
    inside = ["ip", "netns", "exec", network.namespace(STRANGER)]
    return started(
        [*inside, sys.executable, "tests/host/stranger.py", *addresses],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def ours():
    """Return the ports at which this process and all it has started listen."""
    here = psutil.Process()
    return {
        connection.laddr.port
        for process in (here, *here.children(recursive=True))
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "encrypted"])
def test_strangers_get_nowhere_and_hold_nothing_up(tmp_path, monkeypatch, network, encrypts):
    monkeypatch.setenv("PYTHONPATH", "tests")
    identity = RunIdentity.new() if encrypts else None
    host, node = network.driver_address, network.address(NODE)
    inside = ("ip", "netns", "exec", network.namespace(NODE))
    with cluster_in(tmp_path, identity, machine=host) as cluster:
        query = cluster.start(on={"executor-1": 2})
        cluster.agent("executor-1", inside=inside)
        cluster.runs(executor_1=2)
        listening = ours()
        with Flow(query) as flow, stranger(network, host, node) as tries:

            def flows():
                before = flow.done
                cluster.until(lambda: flow.done > before + 2)

            def said():
                answer = tries.stdout.readline()
                flows()
                return json.loads(answer)

            found = said()
            # others on this machine may listen there as well
            assert set(found["ports"]) & listening == {cluster.controller.launcher.port("part")}
            assert said() == {"address": node, "ports": []}  # an agent listens nowhere
            tries.stdin.write(f"{host} {cluster.controller.launcher.port('part')}\n")
            tries.stdin.flush()
            result = said()
            assert result["wrong secrets"] == [0] * 16
            most = 4096 if encrypts else GREETING  # alerts and certificates of TLS
            assert max(result["garbage"]) <= most
            flows()  # while silent connections are held
            tries.stdin.close()
            assert max(said()["held"]) <= most
            tries.wait(DEADLINE_S)
        assert flow.wrong == []
        assert cluster.controller.nodes().keys() == {"executor-1"}
        cluster.runs(executor_1=2)

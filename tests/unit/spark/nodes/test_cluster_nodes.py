"""What is told of nodes while executors come, fail and go: no Spark, and no agent."""

import time

import pytest

from sojourn.errors import EngineError
from sojourn.host.report.reports import NodeIs
from sojourn.spark.nodes import cluster_nodes
from sojourn.spark.nodes.cluster_nodes import ClusterNodes
from sojourn.spark.nodes.executors import Executor
from sojourn.spark.nodes.node_scaling import NodeBounds

ONE, TWO = Executor("1", "left", 4), Executor("2", "right", 4, tasks=1)
DEADLINE_S = 20.0


class Controller:
    """Hosts that agents are connected to as the test says."""

    secret = b"hush"
    certificate = ""

    def __init__(self):
        self.there = {}

    def port(self, _part):
        return 1

    def told_nodes(self):
        return dict(self.there)

    def nodes(self):
        return {name: node.cores for name, node in self.there.items()}

    def placed(self, _operator):
        return {}

    def connect(self, *names):
        self.there = {name: NodeIs("part", name, 4.0, "m", f"/{name}") for name in names}


class Cluster:
    """Executors, and why agents do not start on some."""

    def __init__(self):
        self.there, self.fails, self.controller = [ONE, TWO], {}, Controller()
        self.processors = 1

    def new(self, bounds):
        """Return the nodes, within *bounds*."""
        return ClusterNodes(
            None,
            self.controller,
            parts={"part": ["count"]},
            machine="driver",
            changed=lambda: None,
            processors=lambda: self.processors,
            bounds=bounds,
        )

    def start(self, executor, _stopping):
        if executor.id in self.fails:
            raise EngineError(self.fails[executor.id])

    def told(self):
        return {node.name: node.reason for node in self.nodes.health({}, {})}

    def becomes(self, **told):
        """Wait until it is told of nodes what is expected."""
        wanted = {name.replace("_", "-"): reason for name, reason in told.items()}
        until_s = time.monotonic() + DEADLINE_S
        while {name: reason[:15] for name, reason in self.told().items()} != wanted:
            assert time.monotonic() < until_s, self.told()
            time.sleep(0.01)


@pytest.fixture
def cluster(monkeypatch):
    made = Cluster()
    monkeypatch.setattr(cluster_nodes, "executors", lambda _session: tuple(made.there))
    monkeypatch.setattr(cluster_nodes, "agent_starts", lambda *_: made.start)
    made.nodes = made.new(NodeBounds())
    return made


def test_a_node_is_shown_from_its_connection_until_its_executor_has_gone(cluster):
    cluster.fails = {"1": "not yet", "2": "not yet"}
    with cluster.nodes:
        cluster.becomes(executor_1="not yet", executor_2="not yet")
        cluster.fails = {}
        cluster.becomes()  # agents have started, and are not connected yet
        cluster.controller.connect("executor-1", "executor-2")
        cluster.becomes(executor_1="", executor_2="")
        cluster.controller.connect("executor-1")
        cluster.becomes(executor_1="", executor_2="it is not there")
        cluster.there = [ONE]
        cluster.becomes(executor_1="")
        assert cluster.nodes.health({}, {})[0].logs == "/executor-1"


def test_why_an_agent_does_not_start_is_told_until_it_does_or_its_executor_is_gone(cluster):
    cluster.fails = {"1": "its agent died.", "2": "its agent fell."}
    with cluster.nodes:
        cluster.becomes(executor_1="its agent died.", executor_2="its agent fell.")
        cluster.there = [ONE]
        cluster.becomes(executor_1="its agent died.")
        assert cluster.nodes.failures == {"executor-1": "its agent died."}
        del cluster.fails["1"]
        cluster.becomes()  # it has started, and is not connected yet
        cluster.controller.connect("executor-1")
        cluster.becomes(executor_1="")


class Negotiator:
    """Gives and takes back what it is asked to."""

    wanted = 2

    def __init__(self, _session):
        pass

    def give_back(self, names):
        pass


def test_a_node_that_reads_from_kafka_is_kept_and_another_given_back(cluster, monkeypatch):
    """It could not go before its batch has ended, and would be paid for until then."""
    monkeypatch.setattr(cluster_nodes, "SparkNegotiator", Negotiator)
    cluster.controller.connect("executor-1", "executor-2")
    cluster.nodes = cluster.new(NodeBounds(most=2, calm_s=0.0))
    with cluster.nodes as nodes:
        nodes.begin(lambda _line: None, DEADLINE_S)
        until_s = time.monotonic() + DEADLINE_S
        while len(nodes.nodes) > 1:
            assert time.monotonic() < until_s
            time.sleep(0.01)
        assert nodes.nodes[0].name == "executor-2"

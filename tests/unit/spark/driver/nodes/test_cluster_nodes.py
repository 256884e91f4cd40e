"""What is told of nodes while executors come, fail and go: no Spark, and no agent."""

import queue
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sojourn.decide.plan import Node, NodePlan
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts
from sojourn.spark.agent.kafka_reach import KafkaBrokers
from sojourn.spark.driver.nodes import cluster_nodes
from sojourn.spark.driver.nodes.cluster_nodes import ClusterNodes
from sojourn.spark.driver.nodes.executors import Executor
from sojourn.spark.wire.controller import NodeIs
from sojourn.spark.wire.counters import NodeState

ONE, TWO = Executor("1", "left", 4, tasks=1), Executor("2", "right", 4, tasks=1)
THREE = Executor("3", "far", 4)
DEADLINE_S = 20.0


class Controller:
    """Hosts that agents are connected to as the test says."""

    launcher = SimpleNamespace(secret=b"hush", certificate="", port=lambda _part: 1)

    def __init__(self):
        self.there, self.checks, self.silent = {}, 0, {}
        self.wants, self.runs = {}, {}

    def wanted(self, _operator):
        return self.wants

    def placed(self, _operator):
        return self.runs

    def told_nodes(self):
        return dict(self.there)

    def nodes(self):
        return {name: node.cores for name, node in self.there.items()}

    def silent_nodes(self):
        return dict(self.silent)

    def check_nodes(self):
        self.checks += 1

    def connect(self, *names):
        self.there = {name: NodeIs("part", name, 4.0, "m", f"/{name}") for name in names}


class Given:
    """Notes what is asked of a cluster, which the test then does."""

    def __init__(self):
        self.wanted, self.back = 2, set()

    def ask(self, number):
        self.wanted = number

    def give_back(self, ids):
        self.wanted -= len({*ids} - self.back)
        self.back |= {*ids}


class Cluster:
    """Executors, and why agents do not start on some."""

    def __init__(self):
        self.there, self.fails, self.controller = [ONE, TWO], {}, Controller()

    def new(self, *, elastic=False):
        """Return the nodes, which plans may ask for if they are *elastic*."""
        return ClusterNodes(
            None,
            self.controller,
            parts={"part": ["count"]},
            machine="driver",
            least=1,
            elastic=elastic,
            kafka=KafkaBrokers(),
        )

    def start(self, executor, _stopping):
        if executor.id in self.fails:
            raise EngineError(self.fails[executor.id])

    def told(self):
        return {node.name: node.reason for node in self.nodes.health({}, {}, [], {})}

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
    made.nodes = made.new()
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
        cluster.becomes(executor_1="", executor_2="the connection ")
        cluster.there = [ONE]
        cluster.becomes(executor_1="")
        assert cluster.nodes.health({}, {}, [], {})[0].logs == "/executor-1"


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


def test_what_hosts_measure_is_told_and_warned_of_once(cluster):
    def told(used):
        hosts = [{"executor-1": NodeState(0.002, 0.0, used, 100, {"lines": 5})}]
        return cluster.nodes.health({}, {}, hosts, {})

    with cluster.nodes:
        cluster.controller.connect("executor-1", "executor-2")
        cluster.becomes(executor_1="", executor_2="")
        one, two = told(used=80)
        assert (one.memory_used_bytes, one.received_bytes) == (80, {"lines": 5})
        assert (one.warnings, two.round_trip_s) == ((), None)
        (warning,) = told(used=91)[0].warnings
        assert told(used=95)[0].warnings == (warning,)
        assert told(used=80)[0].warnings == ()


def test_the_executor_of_a_node_that_falls_silent_is_removed(cluster, monkeypatch):
    """Spark would send tasks there until it notices by itself. It is removed once each time."""
    removed = []
    monkeypatch.setattr(
        cluster_nodes, "remove_executor", lambda _session, name: removed.append(name)
    )
    cluster.nodes = cluster.new()
    cluster.controller.connect("executor-1", "executor-2")
    with cluster.nodes:
        cluster.nodes.begin(lambda _text: None, DEADLINE_S)
        until_s = time.monotonic() + DEADLINE_S
        for times in (1, 2):
            cluster.controller.silent = {"executor-2": float(times)}
            while len(removed) < times:
                assert time.monotonic() < until_s
                time.sleep(0.01)
    assert removed == ["2", "2"]


def test_nodes_are_not_asked_again_and_again_whether_they_reach_kafka(cluster, monkeypatch):
    """Each check is a connection that the broker may log."""
    now_s = 1000.0
    monkeypatch.setattr(cluster_nodes, "time", SimpleNamespace(monotonic=lambda: now_s))
    for now_s in (1000.0, 1001.0, 1004.9, 1005.0, 1009.0):  # noqa: B007 - the clock
        cluster.nodes.check_kafka()
    assert cluster.controller.checks == 2


def test_what_it_takes_for_a_node_to_come_and_to_go_is_learned(cluster, monkeypatch):
    given = Given()
    monkeypatch.setattr(cluster_nodes, "SparkNegotiator", lambda _session: given)
    nodes = cluster.new(elastic=True)

    def until(found):
        until_s = time.monotonic() + DEADLINE_S
        while not found():
            assert time.monotonic() < until_s
            time.sleep(0.01)

    with nodes:
        cluster.controller.connect("executor-1", "executor-2")
        nodes.begin(lambda _line: None, DEADLINE_S)
        assert nodes.costs == NodeCosts()
        nodes.request(NodePlan(number=3))
        until(lambda: given.wanted == 3)
        cluster.there.append(THREE)
        cluster.controller.wants = dict.fromkeys(("executor-1", "executor-2", "executor-3"), 4)
        cluster.controller.runs = {**cluster.controller.wants, "executor-3": 3}
        cluster.controller.connect("executor-1", "executor-2", "executor-3")
        until(lambda: len(nodes.nodes) == 3)
        assert nodes.costs.adding_s is None  # one of its processors is still missing
        cluster.controller.runs = cluster.controller.wants
        until(lambda: nodes.costs.adding_s)
        nodes.request(NodePlan(number=2, given_back=("executor-3",)))
        cluster.controller.runs = {"executor-1": 4, "executor-2": 4}
        assert not given.back  # a processor may still be on its way there
        cluster.controller.wants = cluster.controller.runs
        until(lambda: given.back == {"3"})
        assert nodes.costs.removing_s is None
        cluster.there.remove(THREE)
        cluster.controller.connect("executor-1", "executor-2")
        until(lambda: nodes.costs.removing_s)
        assert nodes.node_s > 0


def test_nodes_that_read_from_kafka_are_known(cluster):
    """Such a node could not go before its batch has ended, and would be paid for until then."""
    cluster.there[0] = replace(ONE, tasks=0)
    cluster.controller.connect("executor-1", "executor-2")
    with cluster.nodes as nodes:
        nodes.begin(lambda _line: None, DEADLINE_S)
        expected = Node("executor-1", 4.0), Node("executor-2", 4.0, reads=True)
        until_s = time.monotonic() + DEADLINE_S
        while nodes.nodes != expected:  # the thread of agents may not have looked yet
            assert time.monotonic() < until_s
            time.sleep(0.01)


def test_the_loop_is_told_when_a_node_comes_or_goes(cluster):
    seen = queue.Queue()
    cluster.controller.connect("executor-1", "executor-2")
    with cluster.nodes as nodes:
        nodes.begin(lambda _line: None, DEADLINE_S)
        nodes.on_changed(lambda: seen.put([node.name for node in nodes.nodes]))
        cluster.controller.connect("executor-2")
        assert seen.get(timeout=DEADLINE_S) == ["executor-2"]
        cluster.controller.connect("executor-1", "executor-2")
        assert seen.get(timeout=DEADLINE_S) == ["executor-1", "executor-2"]


def test_plans_for_nodes_are_refused_where_their_number_is_fixed(cluster):
    cluster.nodes.request(None)
    with pytest.raises(EngineError, match="fixed; start with --max-nodes"):
        cluster.nodes.request(NodePlan(number=2))


def test_what_the_cluster_refuses_is_told_until_it_does_it(cluster, monkeypatch):
    given = Given()

    def refuse(_number):
        raise EngineError("the cluster did not accept a request")

    given.ask = refuse
    monkeypatch.setattr(cluster_nodes, "SparkNegotiator", lambda _session: given)
    nodes = cluster.new(elastic=True)
    nodes.request(NodePlan(number=3))
    with nodes:
        cluster.controller.connect("executor-1", "executor-2")
        nodes.begin(lambda _line: None, DEADLINE_S)
        until_s = time.monotonic() + DEADLINE_S
        while nodes.refused != "the cluster did not accept a request":
            assert time.monotonic() < until_s
            time.sleep(0.01)
        nodes.request(NodePlan(number=2))
        while nodes.refused:
            assert time.monotonic() < until_s
            time.sleep(0.01)

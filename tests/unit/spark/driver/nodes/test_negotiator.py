"""What a cluster is asked for when a plan says which nodes there should be: no Spark."""

import pytest

from sojourn.decide.plan import NodePlan
from sojourn.errors import EngineError
from sojourn.spark.driver.nodes.negotiator import RequestedNodes


class Cluster:
    """Executors, of which those that are given back leave when the test says so."""

    def __init__(self, *names):
        self.there, self.wanted, self.refuses = {name: name[-1] for name in names}, 2, ""

    def ask(self, number):
        if self.refuses:
            raise EngineError(self.refuses)
        assert number > self.wanted
        self.wanted = number

    def give_back(self, ids):
        assert {*ids} <= {*self.there.values()}
        self.wanted -= len({*ids})


class Hosts:
    """Processors on nodes, and where they are wanted."""

    def __init__(self):
        self.on = {"node-1": 1, "node-2": 1}
        self.wants = {"node-1": 1, "node-2": 1}

    def placed(self, _operator):
        return self.on

    def wanted(self, _operator):
        return self.wants


@pytest.fixture
def made():
    cluster, hosts = Cluster("node-1", "node-2"), Hosts()
    return RequestedNodes(cluster, ["count"], hosts), cluster, hosts


def looks(made, *, at_s=0.0):
    nodes, cluster, _ = made
    nodes.look(at_s, list(cluster.there), cluster.there)


def test_without_a_plan_nothing_is_asked_for(made):
    looks(made)
    assert made[1].wanted == 2


def test_a_node_is_given_back_when_no_processor_is_there_or_on_its_way(made):
    nodes, cluster, hosts = made
    nodes.plan = NodePlan(number=1, given_back=("node-2",))
    looks(made)
    hosts.wants = {"node-1": 2}
    looks(made)
    assert cluster.wanted == 2
    hosts.on = {"node-1": 2}
    for _ in range(2):
        looks(made)
        assert cluster.wanted == 1


def test_while_one_leaves_another_may_be_asked_for(made):
    nodes, cluster, hosts = made
    nodes.plan = NodePlan(number=2, given_back=("node-2",))
    looks(made)
    assert cluster.wanted == 3  # with the one that still has processors
    hosts.on = hosts.wants = {"node-1": 2}
    looks(made)
    assert cluster.wanted == 2
    del cluster.there["node-2"]
    looks(made)
    assert cluster.wanted == 2


def test_what_is_refused_is_asked_again(made):
    nodes, cluster, _ = made
    cluster.refuses = "no room"
    nodes.plan = NodePlan(number=3)
    looks(made)
    assert nodes.refused == "no room"
    cluster.refuses = ""
    looks(made)
    assert (nodes.refused, cluster.wanted) == ("", 3)


def test_what_it_took_to_come_and_to_go_is_learned(made):
    nodes, cluster, hosts = made
    looks(made)
    nodes.plan = NodePlan(number=3)
    looks(made, at_s=1.0)
    cluster.there["node-3"] = "3"
    looks(made, at_s=4.0)
    assert nodes.moves.costs.adding_s is None  # none of its processors runs yet
    hosts.on = hosts.wants = dict.fromkeys(cluster.there, 1)
    looks(made, at_s=6.0)
    assert nodes.moves.costs.adding_s == 5.0
    nodes.plan = NodePlan(number=2, given_back=("node-3",))
    looks(made, at_s=10.0)
    del cluster.there["node-3"]
    looks(made, at_s=12.0)
    assert nodes.moves.costs.removing_s == 2.0

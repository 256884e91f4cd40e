"""When nodes are asked for and given back."""

from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.act.node_scaling import NodeBounds, node_plan
from sojourn.decide.plan import Node, NodePlan, Plan
from sojourn.errors import BadInput
from sojourn.knowledge import Knowledge
from sojourn.measure.node_costs import NodeCosts

BOUNDS = NodeBounds(least=1, most=3, processors=4)
ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.1),),
)


class Nodes:
    """Remembers between decisions, as the loop does."""

    def __init__(self, bounds, **costs):
        self.bounds = bounds
        self.known = Knowledge(
            topology=ONE, plan=Plan.here({"a": 1}), node_costs=NodeCosts(**costs)
        )

    def plan(self, at_s, processors, names):
        nodes = [Node(name) if name.islower() else Node(name, reads=True) for name in names]
        plan, need = node_plan(self.known, processors, nodes, self.bounds, at_s)
        running = replace(self.known.plan, nodes=plan)
        self.known = replace(self.known, plan=running, node_need=need)
        return plan


def test_no_more_are_asked_for_than_may_be_and_none_twice():
    nodes = Nodes(BOUNDS)
    asked = nodes.plan(0.0, 100, "a")
    assert asked == NodePlan(number=3)
    assert asked.reason == "requests 3 nodes, the maximum: 100 processors, 4 on each"
    assert nodes.plan(1.0, 100, "a") is asked


def test_each_number_has_a_reason():
    assert Nodes(BOUNDS).plan(0.0, 8, "a").reason == (
        "requests 2 nodes: 8 processors, 4 on each"
    )
    minimum = Nodes(BOUNDS.at_least(2)).plan(0.0, 1, "a")
    assert minimum.reason == "requests 2 nodes, the minimum"


def test_fewer_have_to_do_for_a_while_before_one_goes():
    nodes = Nodes(replace(BOUNDS, calm_s=10.0))
    assert nodes.plan(0.0, 4, "abc") is None
    assert nodes.plan(9.0, 12, "abc") is None  # all are needed: it begins anew
    assert nodes.plan(10.0, 4, "abc") is None
    first = nodes.plan(20.0, 4, "abc")
    assert first == NodePlan(number=2, given_back=("c",))
    assert first.reason == "releases c: not needed for 10 s"
    assert nodes.plan(21.0, 4, "abc") == first  # one at a time, and it is still there
    gone = nodes.plan(22.0, 4, "ab")
    assert (gone, gone.reason) == (NodePlan(number=2), "c has left")
    assert nodes.plan(30.0, 4, "ab") == NodePlan(number=1, given_back=("b",))
    assert nodes.plan(100.0, 1, "a") == NodePlan(number=1)


def test_those_that_read_from_outside_go_last():
    """Such a node could not leave before its batch has ended, and would cost until then."""
    nodes = Nodes(replace(BOUNDS, calm_s=0.0))
    assert nodes.plan(0.0, 4, "abC").given_back == ("b",)
    assert nodes.plan(1.0, 4, "aC").given_back == ("a",)
    assert Nodes(replace(BOUNDS, calm_s=0.0)).plan(0.0, 4, "AB").given_back == ("B",)


def test_a_node_that_takes_long_to_come_is_not_asked_for_a_moment():
    nodes = Nodes(BOUNDS, adding_s=180.0)
    assert nodes.plan(0.0, 8, "a") is None
    assert nodes.plan(8.0, 4, "a") is None  # it was a moment
    assert nodes.plan(10.0, 8, "a") is None
    assert nodes.plan(18.5, 8, "a") is None
    assert nodes.plan(19.0, 8, "a") == NodePlan(number=2)


def test_a_node_that_would_take_long_to_come_back_is_kept_longer():
    nodes = Nodes(BOUNDS, adding_s=4.8, removing_s=1.1)  # 4.8 s / 0.05 + 1.1 s
    plans = {at_s: nodes.plan(at_s, 4, "ab") for at_s in (0.0, 60.0, 97.0, 97.2)}
    assert [at_s for at_s, plan in plans.items() if plan] == [97.2]


def test_none_goes_while_others_are_still_coming():
    nodes = Nodes(replace(BOUNDS, calm_s=0.0))
    asked = nodes.plan(0.0, 12, "ab")
    assert nodes.plan(1.0, 4, "ab") is asked
    assert nodes.plan(2.0, 4, "abc") == NodePlan(number=2, given_back=("c",))


def test_more_are_asked_for_while_one_leaves():
    nodes = Nodes(replace(BOUNDS, calm_s=0.0))
    nodes.plan(0.0, 4, "ab")
    assert nodes.plan(1.0, 8, "ab") == NodePlan(number=2, given_back=("b",))


def test_without_a_most_nodes_are_what_they_are():
    nodes = Nodes(NodeBounds(processors=4, calm_s=0.0))
    assert nodes.plan(0.0, 100, "a") is None
    assert nodes.plan(0.0, 1, "ab") is None


@pytest.mark.parametrize(
    "given", [{"least": 0}, {"processors": 0}, {"least": 3, "most": 2}, {"calm_s": -1.0}]
)
def test_bounds_that_cannot_be_are_refused(given):
    with pytest.raises(BadInput, match=r"write \d or more"):
        NodeBounds(**given)

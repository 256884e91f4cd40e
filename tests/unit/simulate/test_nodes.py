"""Simulated nodes, and the simulator that has them."""

from dataclasses import replace
from math import inf

import pytest

import sojourn as sj
from sojourn.decide.plan import NodePlan, Plan
from sojourn.errors import BadAllocation, BadWorkload
from sojourn.simulate.nodes import NodeSettings, SimulatedNodes
from sojourn.simulate.real_time import InstantClock, RealTimeSimulator
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import SimulatorSettings

ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.1),),
)
PLAN = Plan.here({"a": 7})


def names(nodes):
    return [node.name for node in nodes]


def test_a_node_is_not_asked_for_twice():
    nodes = SimulatedNodes(NodeSettings(adding_s=30.0))
    for at_s in (0.0, 10.0):
        nodes.request(NodePlan(number=3), at_s)
    assert nodes.advance(30.0)
    assert names(nodes.there) == ["node-0", "node-1", "node-2"]
    assert nodes.next_s == inf
    assert not nodes.advance(100.0)


def test_a_node_that_went_does_not_come_back_under_its_name():
    nodes = SimulatedNodes(NodeSettings(first=2, adding_s=1.0))
    nodes.request(NodePlan(number=1, given_back=("node-0",)), 5.0)
    nodes.advance(5.0)
    nodes.request(NodePlan(number=2), 6.0)
    nodes.advance(7.0)
    assert names(nodes.there) == ["node-1", "node-2"]
    assert (nodes.costs.adding_s, nodes.costs.removing_s) == (1.0, 0.0)
    assert nodes.node_s(10.0) == pytest.approx(2 * 5.0 + 2.0 + 2 * 3.0)


@pytest.mark.parametrize("given", [{"first": 0}, {"adding_s": -1.0}, {"adding_s": inf}])
def test_nodes_that_cannot_be_are_refused(given):
    with pytest.raises(BadWorkload, match=r"write \d or more"):
        NodeSettings(**given)


@pytest.mark.parametrize(
    "make",
    [
        lambda nodes: Simulator(nodes=nodes),
        lambda nodes: RealTimeSimulator(SimulatorSettings(nodes=nodes), clock=InstantClock()),
    ],
    ids=["simulator", "real-time-simulator"],
)
def test_what_a_plan_asks_for_comes_during_a_look_and_can_be_used_then(make):
    with make(NodeSettings(adding_s=4.0)) as engine:
        engine.start(ONE, PLAN)
        seen = []

        def use():
            seen.append((engine.now_s, names(engine.nodes)))
            (*_, last) = names(engine.nodes)
            engine.apply(replace(engine.plan, placement={"a": {last: 7}}))

        engine.on_nodes_changed(use)
        engine.observe(10.0)
        engine.apply(replace(PLAN, nodes=NodePlan(number=2)))
        assert names(engine.nodes) == ["node-0"]
        assert not seen
        pull = engine.observe(20.0)
        assert seen == [(pytest.approx(14.0, abs=0.11), ["node-0", "node-1"])]
        assert engine.plan.placement == {"a": {"node-1": 7}}
        assert pull.node_costs.adding_s == pytest.approx(4.0, abs=0.11)
        with pytest.raises(BadAllocation, match="no node 'node-2'"):
            engine.apply(Plan(placement={"a": {"node-2": 7}}))


def test_without_nodes_of_its_own_it_is_one_machine():
    with Simulator() as engine:
        engine.start(ONE, PLAN)
        engine.apply(replace(PLAN, nodes=NodePlan(number=2)))
        engine.observe(10.0)
        assert names(engine.nodes) == ["here"]
        assert (engine.node_s, engine.nodes_change_s) == (None, inf)

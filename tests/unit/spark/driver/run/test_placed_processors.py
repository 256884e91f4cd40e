"""Processors on nodes that come and go, as hosts are told: no Spark, and no host."""

from dataclasses import replace
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.decide.plan import ANYWHERE, HERE, Node, NodePlan, Plan
from sojourn.errors import BadAllocation, EngineError
from sojourn.spark.driver.run.placed_processors import PlacedProcessors, this_machine
from sojourn.spark.wire.host_settings import HostSettings, OperatorSettings

ONE, TWO, THREE = Node("executor-1"), Node("executor-2"), Node("executor-3")


class Controller:
    """Hosts that have at once what they are told."""

    def __init__(self):
        self.on = {}

    def place(self, name, on):
        self.on[name] = dict(on)

    def running(self, name):
        return sum(self.on.get(name, {}).values())

    def placed(self, name):
        return self.on.get(name, {})


def topology(*operators):
    return sj.Topology(
        name="shop",
        arrivals=tuple(sj.Arrival(name=f"to {name}", per_s=1, into=name) for name in operators),
        operators=tuple(sj.Operator(name=name, service_s=0.01) for name in operators),
    )


SHOP = topology("total", "price", "pay")


def here(**processors):
    return Plan(placement={name: {HERE: k} for name, k in processors.items()})


def of_cluster(controller, nodes, **processors):
    # total runs inside Spark
    made = PlacedProcessors(here(**processors), ["price", "pay"], controller, on_cluster=True)
    made.use(lambda: nodes)
    return made


def test_processors_are_where_the_plan_says_and_elsewhere_if_it_leaves_that_open():
    controller = Controller()
    placed = of_cluster(controller, [ONE, TWO], total=1, price=1, pay=1)
    assert controller.on == {"price": {ANYWHERE: 1}, "pay": {ANYWHERE: 1}}
    cost = placed.apply(here(total=1, price=2, pay=1), SHOP)
    assert cost.changed == {"price": (1, 2)}
    assert controller.on["price"] == {ANYWHERE: 2}
    wanted = {"total": {HERE: 1}, "price": {"executor-2": 2}, "pay": {"executor-1": 1}}
    cost = placed.apply(Plan(placement=wanted), SHOP)
    assert (cost.changed, placed.plan.placement) == ({}, wanted)
    assert placed.placed() == {"price": {"executor-2": 2}, "pay": {"executor-1": 1}}
    assert placed.wanted_and_running() == (
        {"total": 1, "price": 2, "pay": 1},
        {"price": 2, "pay": 1},
    )


def test_nodes_that_are_given_back_are_there_and_do_not_stay():
    placed = of_cluster(Controller(), [ONE, TWO], total=1, price=1, pay=1)
    assert placed.staying == [ONE, TWO]
    leaving = NodePlan(number=1, given_back=("executor-2",))
    placed.apply(replace(placed.plan, nodes=leaving), SHOP)
    assert (placed.nodes, placed.staying) == ([ONE, TWO], [ONE])


def test_what_spark_runs_itself_keeps_its_processors():
    placed = of_cluster(Controller(), [ONE], total=1, price=1, pay=1)
    with pytest.raises(EngineError, match="total runs inside Spark"):
        placed.apply(here(total=2, price=1, pay=1), SHOP)
    assert placed.plan.allocation["total"] == 1


def test_a_plan_that_lacks_an_operator_changes_nothing():
    controller = Controller()
    placed = of_cluster(controller, [ONE], total=1, price=1, pay=1)
    before = dict(controller.on)
    with pytest.raises(BadAllocation):
        placed.apply(here(price=2), SHOP)
    assert controller.on == before


def test_a_plan_may_name_a_node_that_has_just_gone_and_none_that_never_was_there():
    controller, nodes = Controller(), [ONE, TWO]
    placed = of_cluster(controller, nodes, total=1, price=2, pay=1)
    wanted = {"total": {HERE: 1}, "price": {"executor-2": 2}, "pay": {"executor-1": 1}}
    assert placed.nodes == [ONE, TWO]
    nodes[:] = [TWO]
    placed.apply(Plan(placement=wanted), SHOP)
    assert controller.on["pay"] == {"executor-1": 1}
    strange = Plan(placement={**wanted, "price": {"executor-9": 2}})
    with pytest.raises(BadAllocation, match="there is no node 'executor-9'"):
        placed.apply(strange, SHOP)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_a_host_that_starts_again_has_the_processors_of_now(on_cluster):
    placed = PlacedProcessors(here(price=1), ["price"], Controller(), on_cluster=on_cluster)
    host = HostSettings(
        name="part",
        operators={"price": OperatorSettings(job="shop:price")},
        readers={"price": ("orders",)},
        folder=Path("hosts"),
        cuts=Path("cuts"),
    )
    assert placed.of(host).operators["price"].on == ({} if on_cluster else None)
    plan = here(price=4)
    if on_cluster:
        placed.use(lambda: [ONE, THREE])
        plan = Plan(placement={"price": {"executor-1": 1, "executor-3": 3}})
    else:
        assert placed.nodes == this_machine()
    placed.apply(plan, topology("price"))
    operator = placed.of(host).operators["price"]
    assert operator.processors == 4
    assert operator.on == ({"executor-1": 1, "executor-3": 3} if on_cluster else None)

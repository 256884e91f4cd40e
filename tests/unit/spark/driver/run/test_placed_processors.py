"""Processors on nodes that come and go, as hosts are told: no Spark, and no host."""

from pathlib import Path

import pytest

import sojourn as sj
from sojourn.decide.plan import HERE, Node, Plan
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
    made = PlacedProcessors(here(**processors), ["price", "pay"], controller, everywhere=True)
    made.use(lambda: nodes)
    return made


def test_processors_are_on_the_nodes_there_are_and_follow_them():
    controller, nodes = Controller(), [ONE, TWO]
    placed = of_cluster(controller, nodes, total=1, price=3, pay=1)
    assert controller.on == {
        "price": {"executor-1": 2, "executor-2": 1},
        "pay": {"executor-2": 1},
    }
    nodes[:] = [TWO]
    placed.spread()
    assert controller.on == {"price": {"executor-2": 3}, "pay": {"executor-2": 1}}
    nodes.clear()
    placed.spread()  # nobody is there: they stay as they are until somebody is
    assert placed.plan.placement["price"] == {"executor-2": 3}
    assert (placed.wanted, placed.nodes) == (4, [])


def test_a_plan_for_other_nodes_is_placed_on_those_there_are():
    controller = Controller()
    placed = of_cluster(controller, [ONE, TWO], total=1, price=1, pay=1)
    cost = placed.apply(here(total=1, price=2, pay=1), SHOP)
    assert cost.changed == {"price": (1, 2)}
    assert controller.on["price"] == {"executor-1": 1, "executor-2": 1}
    wanted = {"total": {"executor-1": 1}, "price": {"executor-2": 2}, "pay": {"executor-1": 1}}
    placed.apply(Plan(placement=wanted), SHOP)
    assert controller.on["price"] == {"executor-2": 2}
    assert placed.placed() == {"price": {"executor-2": 2}, "pay": {"executor-1": 1}}
    assert placed.wanted_and_running() == (
        {"total": 1, "price": 2, "pay": 1},
        {"price": 2, "pay": 1},
    )


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


def test_a_plan_for_a_node_that_has_just_gone_is_placed_and_one_for_a_strange_node_refused():
    controller, nodes = Controller(), [ONE, TWO]
    placed = of_cluster(controller, nodes, total=1, price=2, pay=1)
    for_both = placed.plan
    nodes[:] = [TWO]
    placed.apply(for_both, SHOP)
    assert controller.on["price"] == {"executor-2": 2}
    strange = Plan(placement={**for_both.placement, "price": {"executor-9": 2}})
    with pytest.raises(BadAllocation, match="there is no node 'executor-9'"):
        placed.apply(strange, SHOP)


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_host_that_starts_again_has_the_processors_of_now(everywhere):
    placed = PlacedProcessors(here(price=1), ["price"], Controller(), everywhere=everywhere)
    host = HostSettings(
        name="part",
        operators={"price": OperatorSettings(job="shop:price")},
        readers={"price": ("orders",)},
        folder=Path("hosts"),
        cuts=Path("cuts"),
    )
    assert placed.of(host).operators["price"].on == ({} if everywhere else None)
    if everywhere:
        placed.use(lambda: [ONE, THREE])
    else:
        assert placed.nodes == this_machine()
    placed.apply(here(price=4), topology("price"))
    operator = placed.of(host).operators["price"]
    assert operator.processors == 4
    assert operator.on == ({"executor-1": 2, "executor-3": 2} if everywhere else None)

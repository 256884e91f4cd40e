"""Cores of nodes, and how busy they are, from what agents say of their control groups."""

import time

import pytest

from sojourn.decide.plan import Node
from sojourn.measure.report import NodeReport
from sojourn.spark.driver.busy_cores import CpuUsage, NodeCpu
from sojourn.spark.wire.counters import NodeState

NODES = (Node("one", 4.0), Node("two", 4.0))


def told(at_s, cpu_s, *, cores=4.0, pool="here"):
    return NodeState(cores=cores, pool=pool, cpu_s=cpu_s, told_s=at_s)


def looks(*each, nodes=NODES):
    cpu = NodeCpu()
    found = [cpu.looked(states, nodes) for states in each]
    assert all(cpu.last.get(name, report) == report for name, report in found[-1].items())
    return found


def test_what_was_used_between_two_looks_is_what_was_busy():
    first = {"one": told(100, 50.0, pool="a"), "two": told(7, 0.0, pool="b")}
    later = {"one": told(110, 75.0, pool="a"), "two": told(17, 5.0, pool="b")}
    begun, then = looks([first], [later])
    assert begun == {"one": NodeReport(cores=4.0), "two": NodeReport(cores=4.0)}
    assert then == {
        "one": NodeReport(cores=4.0, busy_cores=2.5),
        "two": NodeReport(cores=4.0, busy_cores=0.5),
    }


def test_nodes_that_share_cores_have_equal_parts_of_them():
    """Both see all of the machine, and what both use: it is there once."""
    _, then = looks(
        [{"one": told(0, 10.0), "two": told(100, 10.0)}],
        [{"one": told(10, 40.0), "two": told(110, 40.0)}],
    )
    assert then == dict.fromkeys(("one", "two"), NodeReport(cores=2.0, busy_cores=1.5))


def test_of_several_hosts_the_one_that_was_told_last_counts():
    old, new = {"one": told(5, 3.0)}, {"one": told(10, 8.0, cores=2.0)}
    *_, then = looks([{"one": told(0, 0.0)}], [new, old], nodes=NODES[:1])
    assert then == {"one": NodeReport(cores=2.0, busy_cores=0.8)}


@pytest.mark.parametrize(
    "later",
    [
        told(-5, 9.0),  # its machine was started again
        told(10, 5.0, pool="another container"),
        told(10, None),
    ],
)
def test_what_cannot_be_compared_is_not_known(later):
    *_, then = looks([{"one": told(0, 0.0)}], [{"one": later}], nodes=NODES[:1])
    assert then["one"].busy_cores is None


def test_between_two_looks_without_news_it_is_as_busy_as_it_was():
    """Agents tell it every second, and the loop may look as often."""
    begun, then, still = looks(
        [{"one": told(0, 0.0)}],
        [{"one": told(1, 0.5)}],
        [{"one": told(1, 0.5)}],
        nodes=NODES[:1],
    )
    assert begun["one"].busy_cores is None
    assert then == still == {"one": NodeReport(cores=4.0, busy_cores=0.5)}


def test_nothing_is_busier_than_it_has_cores_or_less_than_not_at_all():
    *_, then = looks(
        [{"one": told(0, 9.0, pool="a"), "two": told(0, 9.0, pool="b")}],
        [{"one": told(1, 99.0, pool="a"), "two": told(1, 0.0, pool="b")}],
    )
    assert [report.busy_cores for report in then.values()] == [4.0, 0.0]


def test_a_node_that_said_nothing_yet_has_the_cores_of_its_hello():
    (found,) = looks([{"one": NodeState()}])
    assert found == {"one": NodeReport(cores=4.0), "two": NodeReport(cores=4.0)}


def test_only_nodes_that_processors_can_be_on_are_told_of():
    (found,) = looks([{"one": told(0, 0.0, pool="a")}], nodes=(NODES[1], Node("three")))
    assert list(found) == ["two"]


def test_a_machine_is_never_busier_than_it_has_cores():
    machine = CpuUsage()
    assert machine.busy_cores(time.monotonic() - 60) is None
    until_s = time.monotonic() + 0.05
    while time.monotonic() < until_s:
        pass
    busy = machine.busy_cores(time.monotonic())
    assert 0 <= busy <= machine.cores

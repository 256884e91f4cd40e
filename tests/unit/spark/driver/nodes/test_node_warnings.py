"""Warnings come once, with the figures of when they came, and go when a node has recovered."""

import pytest

from sojourn.engine import NodeHealth
from sojourn.spark.driver.nodes.node_health import node_notices
from sojourn.spark.driver.nodes.node_warnings import NodeWarnings

GB = 10**9


def memory(name, used_gb, limit_gb=4):
    used_bytes = int(used_gb * GB)
    return NodeHealth(name=name, memory_used_bytes=used_bytes, memory_limit_bytes=limit_gb * GB)


def clock(offset_s, round_trip_s=0.001):
    return NodeHealth(name="one", clock_offset_s=offset_s, round_trip_s=round_trip_s)


@pytest.fixture
def warned():
    warnings = NodeWarnings()
    return lambda *nodes: node_notices(warnings.added(nodes))


def test_memory_that_runs_out_is_told_with_the_way_out(warned):
    (notice,) = warned(memory("executor-1", 3.7), memory("executor-2", 3.5))
    assert notice.startswith("node executor-1: 3.70 GB of its 4.00 GB of memory are in use")
    assert "spark.executor.memoryOverhead" in notice
    assert "--processors-per-node" in notice


def test_a_warning_stays_as_it_is_until_the_node_has_recovered(warned):
    """Each new text would be printed again by `sojourn run`."""
    (first,) = warned(memory("one", 3.7))
    assert warned(memory("one", 3.9)) == warned(memory("one", 3.5)) == [first]
    assert warned(memory("one", 3.3)) == []
    assert warned(memory("one", 3.5)) == []
    (again,) = warned(memory("one", 3.8))
    assert again.startswith("node one: 3.80 GB")


def test_a_node_that_has_gone_meanwhile_begins_anew(warned):
    assert warned(memory("one", 3.7))
    assert warned() == warned(memory("one", 3.5)) == []


def test_what_is_not_known_is_no_warning(warned):
    assert warned(NodeHealth(name="one"), NodeHealth(name="two", memory_used_bytes=7)) == []


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (clock(3600.0), "its clock is 3600.0 s ahead of that of the driver"),
        (clock(-0.5), "its clock is 0.5 s behind that of the driver"),
        (clock(0.2), ""),
        (clock(1.0, round_trip_s=2.0), ""),  # the network may be to blame for all of it
    ],
)
def test_a_clock_that_is_wrong_is_told(warned, node, says):
    assert says in "".join(warned(node))
    assert bool(warned(node)) == bool(says)


def test_one_node_can_have_both_warnings(warned):
    both = NodeHealth(
        name="one", memory_used_bytes=95, memory_limit_bytes=100, clock_offset_s=9.0,
        round_trip_s=0.001,
    )  # fmt: skip
    assert len(warned(both)) == 2

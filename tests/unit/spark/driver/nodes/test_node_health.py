"""How nodes are: from who is connected, who was, and what runs there."""

import pytest

from sojourn.engine import NodeHealth
from sojourn.measure.report import NodeReport
from sojourn.spark.driver.nodes.node_health import (
    NodeWarnings,
    node_health,
    node_notices,
)
from sojourn.spark.wire.controller import NodeIs
from sojourn.spark.wire.counters import NodeState

ONE = NodeIs("part", "executor-1", 4.0, "left", "/nodes/1/logs")
TEN = NodeIs("part", "executor-10", 2.0, "right", "/nodes/10/logs")
PLACED = {"a": {"executor-1": 2, "executor-10": 1}, "b": {"executor-1": 1}, "c": {}}
MEMORY = {"a": {"executor-1": 100, "executor-10": 30}, "b": {"executor-1": 7}}


def test_what_runs_on_a_node_is_counted_there():
    there = {"executor-10": TEN, "executor-1": ONE}
    assert node_health(there, {}, {}, PLACED, MEMORY, hosts=(), cores={}) == (
        NodeHealth(
            name="executor-1", cores=4.0, processors={"a": 2, "b": 1}, memory_bytes=107,
            machine="left", logs="/nodes/1/logs",
        ),
        NodeHealth(
            name="executor-10", cores=2.0, processors={"a": 1}, memory_bytes=30,
            machine="right", logs="/nodes/10/logs",
        ),
    )  # fmt: skip


def test_of_a_node_that_is_away_only_its_logs_are_left():
    """What was placed there, and its memory, are of the report before it went."""
    away = {"executor-10": TEN}
    one, ten = node_health({"executor-1": ONE}, away, {}, PLACED, MEMORY, hosts=(), cores={})
    assert not one.reason
    assert (ten.cores, ten.processors, ten.memory_bytes) == (2.0, {}, 0)
    assert (ten.machine, ten.logs) == ("right", "/nodes/10/logs")
    (notice,) = node_notices([one, ten])
    assert node_notices([one, ten], "no more cores") == [
        notice,
        "nodes: no more cores; the request is repeated",
    ]
    assert notice.startswith("node executor-10: the connection to its agent is lost")


def test_the_reason_of_a_start_that_failed_is_told():
    why = "its agent did not start: No module named sojourn"
    failures = {"executor-2": why, "executor-10": why}
    (two, ten) = node_health({}, {"executor-10": TEN}, failures, {}, {}, hosts=(), cores={})
    assert (two.name, two.cores, two.logs) == ("executor-2", None, "")
    assert node_notices([two, ten]) == [f"node executor-2: {why}", f"node executor-10: {why}"]


def test_a_node_that_does_not_reach_kafka_is_told_with_the_address():
    """Each host hears of it from the same agent, and users hear of it once."""
    why = "no connection to Kafka at kafka-1:9092: Connection refused"
    there = {"executor-1": ONE, "executor-10": TEN}
    hosts = [{"executor-1": NodeState(kafka=why)}, {"executor-1": NodeState(kafka=why)}]
    nodes = node_health(there, {}, {}, {}, {}, hosts=hosts, cores={})
    assert node_notices(nodes) == [f"node executor-1: {why}"]


def test_an_agent_that_has_come_after_all_is_no_failure():
    (one,) = node_health(
        {"executor-1": ONE}, {}, {"executor-1": "not ready"}, {}, {}, hosts=(), cores={}
    )
    assert (one.reason, node_notices([one])) == ("", [])


def test_what_hosts_have_measured_of_a_node_is_put_together():
    """Each host has a connection of its own to the same machine."""
    near = NodeState(0.001, 0.2, 70, 100, {"a": 1, "b": 2}, {"c": 3}, 10.0, 20.0)
    far = NodeState(0.004, 0.3, 71, 100, {"a": 10}, {"c": 30}, 1.0, 2.0)
    hosts = [{"executor-1": far, "executor-10": far}, {"executor-1": near}, {}]
    cores = {
        "executor-1": NodeReport(cores=2.0, busy_cores=1.5),
        "executor-10": NodeReport(cores=2.0, busy_cores=1.5),
    }
    there, away = {"executor-1": ONE, "executor-2": ONE}, {"executor-10": TEN}
    one, two, ten = node_health(there, away, {}, {}, {}, hosts=hosts, cores=cores)
    known = {"machine": "left", "logs": "/nodes/1/logs"}
    assert one == NodeHealth(
        name="executor-1", cores=2.0, busy_cores=1.5, memory_used_bytes=71,
        memory_limit_bytes=100, round_trip_s=0.001,
        clock_offset_s=0.2, received_bytes={"a": 11, "b": 2}, sent_bytes={"c": 33},
        received_bytes_per_s=11.0, sent_bytes_per_s=22.0, **known,
    )  # fmt: skip
    assert two == NodeHealth(name="executor-2", cores=4.0, **known)
    assert (ten.cores, ten.busy_cores, ten.round_trip_s) == (2.0, None, None)


def test_a_node_of_which_little_is_known_yet_is_no_trouble():
    hosts = [{"executor-1": NodeState()}]
    (one,) = node_health({"executor-1": ONE}, {}, {}, {}, {}, hosts=hosts, cores={})
    assert one == NodeHealth(name="executor-1", cores=4.0, machine="left", logs="/nodes/1/logs")


# -- warnings: once, with the figures of when they came, until a node has recovered ---------

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

"""What is measured of nodes: clocks, bytes and memory of real agents."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from host.clustering import HERE, cluster_in, lines_of, words_of
from host.relaying import headers_of
from sojourn.app.operator import OnError
from sojourn.spark.agent.resources import core_use, group_folders, memory_here

HOUR_S = 3600.0
BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "node_measures.py"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with cluster_in(tmp_path) as made:
        yield made


def nodes_of(cluster, query, known):
    """Return how nodes are, once of each is known what is asked for."""
    told = {}

    def is_known():
        told.update(query.state().nodes)
        return told and all(map(known, told.values()))

    cluster.until(is_known)
    return told


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S])
def test_a_node_whose_clock_is_an_hour_off_has_the_same_waits(cluster, ahead_s):
    """Times of two clocks are never subtracted, so none of them has the hour in it."""
    query = cluster.start(on={"executor-1": 1, "executor-2": 1})
    cluster.agent("executor-1", ahead_s=ahead_s)
    cluster.agent("executor-2")
    cluster.runs(executor_1=1, executor_2=1)
    rows = query.results(*lines_of(50, "slow"), timestamp_us=int(time.time() * 1e6))
    query.tally()
    wrong, right = (
        nodes_of(cluster, query, lambda node: node.offset_s is not None)[name]
        for name in ("executor-1", "executor-2")
    )
    assert abs(wrong.offset_s - ahead_s) <= wrong.round_trip_s / 2
    assert abs(right.offset_s) <= right.round_trip_s / 2
    tallies = [tally.operators["where"] for tally in query.told]
    counts = [counts for tally in tallies for counts in tally.processors]
    assert len({each.processor for each in counts if each.served}) == 2
    assert sum(each.served for each in counts) == 50
    # about a second of waiting for each, and each took some 10 ms, whichever clock it met
    assert 0 < sum(each.wait_s for each in counts) < HOUR_S
    assert 0.5 <= sum(each.service_s for each in counts) < HOUR_S
    traces = [trace for tally in tallies for trace in tally.traces]
    assert traces
    assert all(0 < trace.sojourn_s < HOUR_S for trace in traces)
    written_s = [float(headers_of(row)["sojourn-written"]) for row in rows]
    assert all(abs(each_s - time.time()) < HOUR_S / 2 for each_s in written_s)


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S])
def test_the_clock_of_a_machine_that_reads_from_kafka_is_not_asked(
    cluster, monkeypatch, ahead_s
):
    """Records of which nobody knows the time count from when the host has them."""
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + ahead_s)  # of the relay, which is here
    (row,) = query.results(*lines_of(1), timestamp_us=None)
    assert abs(float(headers_of(row)["sojourn-birth"]) - true()) < HOUR_S / 2


def test_bytes_are_counted_by_stream_in_both_directions(cluster):
    query = cluster.start(on={"executor-1": 1, "executor-2": 1})
    cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.runs(executor_1=1, executor_2=1)
    lines = lines_of(60, "slow" + 1000 * "x")
    rows = query.results(*lines)
    assert len(words_of(rows)) == 60
    nodes = query.state().nodes
    assert nodes.keys() == {"executor-1", "executor-2"}
    assert all(node.to.keys() == {"lines"} for node in nodes.values())
    assert all(node.back.keys() == {"where"} for node in nodes.values())
    carried = sum(map(len, lines))
    beside = 60 * 500  # names, places and times, at most
    assert carried < sum(node.to["lines"] for node in nodes.values()) < carried + beside
    made = sum(len(row["value"]) for row in rows)
    assert made < sum(node.back["where"] for node in nodes.values()) < made + beside


def test_bytes_per_second_are_known_before_long(cluster):
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    query.results(*lines_of(20, "slow"))
    nodes_of(cluster, query, lambda node: node.to_per_s > 0 and node.back_per_s > 0)


def test_a_node_tells_whether_its_clients_reach_kafka_and_again_when_asked(cluster):
    query = cluster.start(on={"executor-1": 1})
    with socket.create_server((HERE, 0)) as broker:
        address = f"{HERE}:{broker.getsockname()[1]}"
        cluster.agent("executor-1", kafka=[address])
        cluster.runs(executor_1=1)
        broker.accept()[0].close()
        cluster.until(lambda: query.state().nodes["executor-1"].limit_bytes is not None)
        assert query.state().nodes["executor-1"].kafka == ""
    why = f"no connection to Kafka at {address}: Connection refused"

    def told():
        cluster.controller.check_nodes()
        return query.state().nodes["executor-1"].kafka == why

    cluster.until(told)


def test_a_node_tells_its_memory(cluster):
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    nodes = nodes_of(cluster, query, lambda node: node.limit_bytes is not None)
    assert nodes["executor-1"].limit_bytes == memory_here().limit_bytes
    assert 0 < nodes["executor-1"].used_bytes < memory_here().limit_bytes


def test_a_node_tells_its_cores_and_what_is_used_of_them(cluster):
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    (first,) = nodes_of(cluster, query, lambda node: node.cpu_s is not None).values()
    (later,) = nodes_of(cluster, query, lambda node: node.told_s > first.told_s).values()
    here = core_use()
    assert (later.cores, later.pool) == (first.cores, first.pool) == (here.cores, here.pool)
    assert first.cpu_s <= later.cpu_s <= here.used_s + 1


def test_what_processors_did_is_told_with_their_nodes(cluster):
    query = cluster.start(on={"executor-1": 1, "executor-2": 1})
    cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.runs(executor_1=1, executor_2=1)
    query.results(*lines_of(50, "slow"))
    query.tally()
    counts = [each for tally in query.told for each in tally.operators["where"].processors]
    assert {each.node for each in counts if each.served} == {"executor-1", "executor-2"}


@pytest.fixture
def group():
    """Give a control group of our own, if this system lets us have one."""
    told = Path("/proc/self/cgroup").read_text()
    around = [
        folder
        for folder in group_folders(told, Path("/sys/fs/cgroup"), "memory")
        if (folder / "memory.limit_in_bytes").exists() or (folder / "memory.max").exists()
    ]
    made = around[0] / f"sojourn-test-{os.getpid()}" if around else None
    try:
        if made is None:
            pytest.skip("there are no control groups for memory")
        made.mkdir()
        limit = made / "memory.limit_in_bytes"
        (limit if limit.exists() else made / "memory.max").write_text(str(1 << 30))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield made
    until_s = time.monotonic() + 20
    while (made / "cgroup.procs").read_text().strip() and time.monotonic() < until_s:
        time.sleep(0.02)
    made.rmdir()


def test_in_a_container_it_is_the_memory_of_the_container(group, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with cluster_in(tmp_path) as cluster:
        query = cluster.start(on={"executor-1": 1})
        agent = cluster.agent("executor-1")
        (group / "cgroup.procs").write_text(str(agent.pid))
        cluster.runs(executor_1=1)
        (node,) = nodes_of(cluster, query, lambda node: node.limit_bytes == 1 << 30).values()
        assert 0 < node.used_bytes < 1 << 30


def test_what_needs_more_memory_than_a_container_has_is_a_dead_letter(
    group, tmp_path, monkeypatch
):
    """The system kills the processor, its node goes on, and so does everything else."""
    monkeypatch.setenv("PYTHONPATH", "tests")
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "--"]
    lines = ["1"] * 10 + ["2000"] + ["1"] * 10
    with cluster_in(tmp_path) as cluster:
        policy = OnError(retries=0, then="dead_letter")
        query = cluster.start("holds", on={"executor-1": 2}, on_error=policy)
        agent = cluster.agent("executor-1", inside=enter)
        cluster.runs(executor_1=2)
        rows = query.results(*(json.dumps({"line": line}).encode() for line in lines))
        (dead,) = (row for row in rows if row["topic"] == "dead-topic")
        assert json.loads(dead["value"]) == {"line": "2000"}
        assert b"was killed by signal 9" in headers_of(dead)["sojourn-error"]
        assert sum(row["topic"] == "words-topic" for row in rows) == 20
        cluster.runs(executor_1=2)
        assert agent.poll() is None


@pytest.mark.slow
def test_the_quick_run_of_its_benchmark_measures_everything(tmp_path):
    report = tmp_path / "found.json"
    subprocess.run([sys.executable, BENCHMARK, "--quick", "--json", report], check=True)
    found = json.loads(report.read_text(encoding="utf-8"))
    assert [clock["load"] for clock in found["clocks"]] == ["none", "all it can do"]
    assert all(each["worst_s"] <= each["most_round_trip_s"] / 2 for each in found["clocks"])
    assert all(each_s > 0 for each_s in found["costs"].values())

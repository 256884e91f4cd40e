"""An application on a real cluster: one of two nodes dies, and nothing is missing."""

import re
import time
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from sojourn.act.policy.static import Static
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.loop import Loop
from sojourn.spark.agent.resources import core_use
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.applications import nodes_app
from sojourn_trial.cluster.machine_processes import processes_of
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.kills.ledger import length
from sojourn_trial.kills.victims import on_nodes
from spark import prices
from spark.emptied import emptied

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
DEADLINE_S = 180
LINES = 200
SHIPPED = {"spark.files": "prices.json"}
ALLOCATION = {"split": 2, "count": 3}


def until(found):
    until_s = time.monotonic() + DEADLINE_S
    while not found():
        assert time.monotonic() < until_s
        time.sleep(0.1)


@pytest.fixture
def servers(kafka):
    """Return where clients reach a broker without records of another test."""
    with emptied(kafka):
        yield kafka.bootstrap_servers


@pytest.fixture
def cluster(short_folder):
    with TrialCluster(nodes=2, cores=5, folder=short_folder / "cluster", plain=True) as running:
        yield running


def settings(cluster, servers, folder, **more):
    """Return the settings of an application on a cluster."""
    return SparkSettings(
        servers=servers,
        state=folder / "state",
        batch_s=5.0,
        partitions=2,  # so that each node reads from Kafka
        master=cluster.master,
        spark={
            "spark.driver.host": cluster.driver_address,
            "spark.executor.cores": "5",
            "spark.executor.memory": "600m",
        },
        **more,
    )


def test_processors_are_on_all_nodes_and_one_that_dies_takes_nothing_with_it(
    servers, cluster, short_folder
):
    """Counts by key are exact, in a state, although a node dies with records and a feed."""
    told = settings(cluster, servers, short_folder)
    app = nodes_app.app
    with SparkEngine(app, "sojourn_trial.applications.nodes_app:app", told) as engine:
        engine.start(app.topology({"lines": 10.0}), Plan.here(ALLOCATION))
        assert len(engine.nodes) == 2
        loop = Loop(engine, app.topology({"lines": 10.0}), Static(), every_s=1)
        (placed,) = loop.follow_nodes()
        assert placed.decision.kind == "move"
        assert {len(on) for on in engine.plan.placement.values()} == {2}
        # as the service does
        engine.on_nodes_changed(lambda: followed.extend(loop.follow_nodes()))
        followed = []
        assert on_nodes(short_folder, "agent")
        nodes_app.send(servers, 0, LINES)
        until(lambda: length(servers, "words.count") >= LINES)
        until(lambda: _are_measured(engine))
        until(lambda: _ends_are_known(servers))
        cluster.kill(cluster.workers[0].number)
        nodes_app.send(servers, LINES, LINES)
        until(lambda: len(engine.nodes) == 1)
        assert engine.plan.allocation == ALLOCATION
        until(lambda: followed)
        assert "was lost; processors move to executor-" in followed[0].decision.reason
        assert {len(on) for on in engine.plan.placement.values()} == {1}
        until(lambda: not nodes_app.outcome(servers, 2 * LINES).lost)
        assert not nodes_app.outcome(servers, 2 * LINES).wrong
        assert not engine.health().failure
    until(lambda: not on_nodes(short_folder, "agent"))


def test_a_topology_file_and_files_that_functions_need_are_shipped(
    servers, cluster, short_folder, monkeypatch
):
    """Both have a path that means something else on nodes."""
    here = short_folder / "here"
    (here / "plans").mkdir(parents=True)
    (here / "prices.json").write_text('{"tea": 3}')
    (here / "plans" / "words.yaml").write_text(
        "format: 1\nname: words\narrivals: {lines: {per_s: 1, into: split}}\n"
        "operators: {split: {service_s: 0.001}}\n"
    )
    monkeypatch.chdir(here)
    told = settings(cluster, servers, short_folder)
    file = load("plans/words.yaml")
    with SparkEngine(file, "plans/words.yaml", told) as engine:
        engine.start(file.topology({"lines": 1.0}), Plan.here({"split": 2}))
        nodes_app.produce(servers, "words.lines", [{"seed": 1}])
        until(lambda: length(servers, "words.split") == 1)
    told = replace(told, state=short_folder / "another", spark={**told.spark, **SHIPPED})
    with SparkEngine(prices.app, "spark.prices:app", told) as engine:
        engine.start(prices.app.topology({"orders": 1.0}), Plan.here({"price": 2}))
        nodes_app.produce(servers, "prices.orders", [{"item": "tea"}])
        until(lambda: length(servers, "prices.price") == 1)


@pytest.mark.slow
def test_a_node_that_falls_silent_takes_nothing_with_it(servers, cluster, short_folder):
    """No connection ends, as if its machine had lost its power or its network."""
    told = settings(cluster, servers, short_folder)
    app = nodes_app.app
    with SparkEngine(app, "sojourn_trial.applications.nodes_app:app", told) as engine:
        engine.start(app.topology({"lines": 10.0}), Plan.here(ALLOCATION))
        nodes_app.send(servers, 0, LINES)
        until(lambda: length(servers, "words.count") >= LINES)
        silent = _processes(cluster, cluster.workers[0].number)
        for process in silent:
            process.suspend()
        try:
            nodes_app.send(servers, LINES, LINES)
            until(lambda: not nodes_app.outcome(servers, 2 * LINES).lost)
            assert not nodes_app.outcome(servers, 2 * LINES).wrong
            until(lambda: len(engine.nodes) == 1)
            assert sum(engine.health().restarts.values()) > 0
            assert not engine.health().failure
        finally:
            for process in silent:
                with suppress(psutil.NoSuchProcess):
                    process.resume()


def _processes(cluster, number):
    """Return all processes of a machine of a trial cluster."""
    return processes_of([cluster.state.mark(number)], [])


@pytest.mark.slow
def test_nodes_come_as_processors_need_them_and_go_without_repeating_anything(
    servers, cluster, short_folder
):
    """Each time one is given back, a batch ends in order: nothing is at the sink twice."""
    sent = 0
    scaled = {"max_nodes": 2, "processors_per_node": 4, "node_calm_s": 5.0}
    told = settings(cluster, servers, short_folder, **scaled)
    app = nodes_app.app
    with SparkEngine(app, "sojourn_trial.applications.nodes_app:app", told) as engine:
        engine.start(app.topology({"lines": 10.0}), Plan.here(ALLOCATION))
        bounds, told = told.bounds(2), []
        topology = app.topology({"lines": 10.0})
        loop = Loop(engine, topology, Static(), every_s=0.5, bounds=bounds)
        for count, nodes in ((1, 1), (4, 2), (1, 1)):
            wanted = {"split": 1, "count": count}
            told.append(loop.set_processors(wanted, f"a test wants {count}"))
            until_s = time.monotonic() + DEADLINE_S
            while not _runs_on(short_folder, nodes):
                assert time.monotonic() < until_s
                told.append(loop.turn())
            nodes_app.send(servers, sent, LINES)
            sent += LINES
        until(lambda: nodes_app.outcome(servers, sent).exact)
        reasons = " ".join(episode.decision.reason for episode in told)
        assert "requests 2 nodes, the maximum: 5 processors, 4 on each" in reasons
        assert len(re.findall(r"releases executor-\d+: not needed for [5-9] s", reasons)) == 2
        health = engine.health()
        assert not any(health.restarts.values())
        # one was added and two were removed, and an executor is paid until it is gone
        assert min(health.node_costs.adding_s, health.node_costs.removing_s) > 0
        assert health.node_s > engine.now_s


def _are_measured(engine):
    """Tell whether clock, memory, cores and bytes of both nodes are known."""
    pull = engine.observe(engine.now_s + 0.1)
    nodes = engine.health().nodes
    if any(node.busy_cores is None for node in nodes):
        return False
    # both are on this machine, and have equal parts of its cores
    assert [report.cores for report in pull.nodes.values()] == [core_use().cores / 2] * 2
    assert [(node.cores, node.busy_cores) for node in nodes] == [
        (report.cores, report.busy_cores) for report in pull.nodes.values()
    ]
    assert pull.cores is None
    streams = {stream for node in nodes for stream in (*node.received_bytes, *node.sent_bytes)}
    known = [
        (node.clock_offset_s, node.round_trip_s, node.memory_limit_bytes) for node in nodes
    ]
    return len(nodes) == 2 and None not in sum(known, ()) and {"lines", "split"} <= streams


def _ends_are_known(servers):
    """Send many more records, and tell whether Java of an executor knows where they end.

    Else each record would go to Python alone, which nothing but its speed would show.
    """
    nodes_app.send_empty(servers, 2000)
    properties = sql.reflect(sql.lit("java.lang.System"), sql.lit("getProperties"))
    tasks = SparkSession.getActiveSession().range(0, 4, 1, 4)
    found = [properties for (properties,) in tasks.select(properties).collect()]
    return any(re.search(r"sojourn\.ends\.\w+/words\.lines/\d=", each) for each in found)


def _runs_on(folder, nodes):
    """Tell whether so many executors have an agent: those that were given back are gone."""
    return len(on_nodes(folder, "agent")) == nodes

"""An application on a real cluster: one of two nodes dies, and nothing is missing."""

import json
import time

import psutil
import pytest
from confluent_kafka import Producer

from ledger import compare, length, written
from sojourn.plan import Plan
from sojourn.spark.kafka.broker import Broker
from sojourn.spark.nodes.trial_cluster import TrialCluster
from sojourn.spark.settings import SparkSettings
from sojourn.spark.spark_engine import SparkEngine
from spark import words_on_nodes

pytestmark = pytest.mark.spark
DEADLINE_S = 180
LINES = 200
ALLOCATION = {"split": 2, "count": 3}


def until(found):
    until_s = time.monotonic() + DEADLINE_S
    while not found():
        assert time.monotonic() < until_s
        time.sleep(0.1)


@pytest.fixture
def cluster(short_folder):
    with TrialCluster(nodes=2, cores=5, folder=short_folder / "cluster", plain=True) as running:
        yield running


def send(servers, first):
    producer = Producer({"bootstrap.servers": servers})
    for number in range(first, first + LINES):
        line = f"word-{number % 7} word-{number % 3}"
        producer.produce("words.lines", json.dumps({"line": line}).encode())
    producer.flush()


def counts(lines):
    """Return what comes of so many lines: each word with each of its numbers."""
    found, seen = [], {}
    for number in range(lines):
        for word in (f"word-{number % 7}", f"word-{number % 3}"):
            seen[word] = seen.get(word, 0) + 1
            found.append((word, seen[word]))
    return found


def test_processors_are_on_all_nodes_and_one_that_dies_takes_nothing_with_it(
    jars, cluster, short_folder
):
    """Counts by key are exact, in a state, although a node dies with records and a feed."""
    settings = {
        "spark.driver.host": cluster.driver_address,
        "spark.executor.cores": "5",
        "spark.executor.memory": "600m",
    }
    with Broker(jars=jars, secured=False) as broker:
        servers = broker.bootstrap_servers
        told = SparkSettings(
            servers=servers,
            state=short_folder / "state",
            batch_s=5.0,
            partitions=2,  # so that each node reads from Kafka
            master=cluster.master,
            spark=settings,
        )
        app = words_on_nodes.app
        with SparkEngine(app, "spark.words_on_nodes:app", told) as engine:
            engine.start(app.topology({"lines": 10.0}), Plan.here(ALLOCATION))
            assert len(engine.nodes) == 2
            assert {len(on) for on in engine.plan.placement.values()} == {2}
            assert agents_in(short_folder)
            send(servers, 0)
            until(lambda: length(servers, "words.count") >= LINES)
            cluster.kill(cluster.workers[0].number)
            send(servers, LINES)
            until(lambda: len(engine.nodes) == 1)
            assert engine.plan.allocation == ALLOCATION
            due = counts(2 * LINES)
            until(lambda: not outcome(servers, due).lost)
            assert not outcome(servers, due).wrong
            assert not engine.health().failure
        until(lambda: not agents_in(short_folder))


def outcome(servers, due):
    rows = (tuple(json.loads(payload).values()) for payload in written(servers, "words.count"))
    return compare(due, rows)


def agents_in(folder):
    """Return the agents of executors that have their folders in *folder*."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if "sojourn.host.node" in (process.info["cmdline"] or ())
        and str(process.info["cwd"]).startswith(str(folder))
    ]

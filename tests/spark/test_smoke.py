"""The life of an application on a cluster, in short: all that `make test` starts on Spark."""

import json
import os
import signal
import time
from collections import Counter

import pytest

from sojourn.decide.plan import HERE, Plan
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.applications.nodes_app import produce
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.kills.ledger import written
from spark.tally import app

pytestmark = [pytest.mark.spark, pytest.mark.smoke]
DEADLINE_S = 120
ITEMS = [f"item-{number % 7}" for number in range(60)]


def until(true):
    until_s = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.1)


def rows(servers, topic):
    return [(row["item"], row["n"]) for row in map(json.loads, written(servers, topic))]


def buy(servers, bought, items):
    produce(servers, app.topic("purchases"), [{"item": item} for item in items])
    bought.update(items)


def await_all(servers, bought):
    """Return when all that was bought is counted, and the last counts are the largest."""
    until(lambda: len(rows(servers, "tally.counted")) >= bought.total())
    exact = {(item, n + 1) for item, last in bought.items() for n in range(last)}
    assert Counter(rows(servers, "tally.counted")) == Counter(exact)
    until(lambda: dict(rows(servers, "tally.most")) == bought)


def test_it_is_rescaled_loses_a_host_is_drained_and_continues(broker, servers, short_folder):
    bought = Counter()
    folder = short_folder / "cluster"
    with TrialCluster(nodes=1, cores=10, folder=folder, plain=True) as cluster:
        broker.create_topics({app.topic("purchases"): 1})
        settings = SparkSettings(
            servers=servers,
            state=short_folder / "state",
            batch_s=5.0,
            partitions=1,
            master=cluster.master,
            spark={
                "spark.driver.host": cluster.driver_address,
                "spark.executor.cores": "10",
                "spark.executor.memory": "600m",
            },
        )
        topology = app.topology({"purchases": 10.0})
        with SparkEngine(app, "spark.tally:app", settings) as engine:
            engine.start(topology, Plan.here({"check": 1, "count": 1, "most": 1}))
            (node,) = engine.nodes
            buy(servers, bought, ITEMS)
            scaled = {"check": {node.name: 2}, "count": {node.name: 3}, "most": {HERE: 1}}
            engine.apply(Plan(placement=scaled))
            assert engine.plan.placement == scaled
            await_all(servers, bought)
            os.kill(engine.host_pid("count"), signal.SIGKILL)
            buy(servers, bought, ITEMS)
            await_all(servers, bought)
            assert sum(engine.health().restarts.values()) > 0
            assert engine.plan.allocation == {"check": 2, "count": 3, "most": 1}
            engine.drain()
            assert engine.uncommitted() == 0
        with SparkEngine(app, "spark.tally:app", settings) as engine:
            engine.start(topology, Plan.here({"check": 1, "count": 2, "most": 1}))
            buy(servers, bought, ITEMS)
            await_all(servers, bought)
            assert not engine.health().failure

"""Somebody else's broker is away, for longer than Kafka's clients and Spark wait for it."""

import json
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer

from sojourn.act.policy.static import Static
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.errors import ApplicationStopped
from sojourn.loop import Loop
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
DEADLINE_S = 240
# Longer than two batches; and more than the minute after which Spark's questions for offsets
# fail.
SHORT_S, LONG_S, PATIENCE_S = 12.0, 75.0, 90.0
CHAIN = {
    "format": 1,
    "name": "outage",
    "arrivals": {"in": {"per_s": 5, "into": "a"}},
    "operators": {
        "a": {"service_s": 0.001, "emits": {"b": 1}},
        "b": {"service_s": 0.001},
    },
}


def send(broker, first, number):
    producer = Producer(broker.cluster.for_clients | {"log_level": 0})
    for n in range(first, first + number):
        producer.produce("outage.in", json.dumps({"n": n}).encode())
    assert producer.flush(DEADLINE_S) == 0


class Done:
    """What has left the last operator: the roots, by their offset."""

    def __init__(self, broker, topic):
        told = {"group.id": "done", "auto.offset.reset": "earliest", "log_level": 0}
        self._consumer, self.roots = Consumer(broker.cluster.for_clients | told), set()
        self._consumer.subscribe([topic])

    def await_all(self, loop, number):
        until_s = time.monotonic() + DEADLINE_S
        while self.roots != set(range(number)):
            assert time.monotonic() < until_s, sorted(set(range(number)) - self.roots)
            loop.turn()
            while (message := self._consumer.poll(0.1)) is not None:
                if message.error() is None:
                    root = dict(message.headers())["sojourn-root"]
                    self.roots.add(int(root.rpartition(b"/")[2]))

    def close(self):
        self._consumer.close()


@contextmanager
def running(jars, folder):
    """Yield a broker, and the engine and loop of an application that reads from it."""
    address = folder / "outage.json"
    address.write_text(json.dumps(CHAIN))
    app, topology = load(str(address)), read_topology(address)
    with Broker(jars=jars) as broker:
        settings = SparkSettings(
            servers=broker.bootstrap_servers,
            kafka=broker.cluster.options,
            state=folder / "state",
            batch_s=5,
            patience_s=PATIENCE_S,
        )
        with SparkEngine(app, str(address), settings) as engine:
            engine.start(topology, Plan.here({"a": 1, "b": 1}))
            yield broker, engine, Loop(engine, topology, Static(), every_s=1)


def outlives(broker, engine, loop, outage_s):
    """Let the broker be away for so long, with records on their way; nothing is lost."""
    done = Done(broker, "outage.b")
    try:
        send(broker, 0, 50)
        done.await_all(loop, 50)
        send(broker, 50, 50)
        broker.kill()
        until_s = time.monotonic() + DEADLINE_S
        while (engine.health().no_broker_s or 0.0) < outage_s:
            assert time.monotonic() < until_s
            episode = loop.turn()
            assert not engine.health().failure
        assert "no Kafka broker has answered for" in episode.decision.reason
        assert "the application waits until one does" in engine.health().notices[0]
        broker.start_again()
        send(broker, 100, 50)
        done.await_all(loop, 150)
        # records that waited while the broker started seem to be from a clock that is behind
        assert not any("broker" in notice for notice in engine.health().notices)
        assert engine.health().failure == ""
    finally:
        done.close()


def test_an_outage_is_waited_for_and_nothing_is_lost(jars, tmp_path):
    with running(jars, tmp_path) as (broker, engine, loop):
        outlives(broker, engine, loop, SHORT_S)


@pytest.mark.slow
def test_an_outage_is_outlived_and_nothing_is_lost_until_patience_ends(jars, tmp_path):
    with running(jars, tmp_path) as (broker, engine, loop):
        outlives(broker, engine, loop, LONG_S)
        broker.kill()
        with pytest.raises(ApplicationStopped, match=r"no broker has answered at .* for 9"):
            list(loop.run(engine.now_s + DEADLINE_S))

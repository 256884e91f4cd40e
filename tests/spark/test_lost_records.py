"""Kafka's retention has overtaken an application that stood still."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from confluent_kafka import Producer, TopicPartition

from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.errors import BadInput
from sojourn.loop import Loop
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.driver.state.key_states import KeyStates
from spark.counting_app import app
from spark.test_full_disk import Sink

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
DEADLINE_S = 180
WORDS = [f"word{number % 7}" for number in range(100)]


def send(broker, words):
    producer = Producer(broker.cluster.for_clients | {"log_level": 0})
    for word in words:
        producer.produce(app.topic("words"), json.dumps({"word": word}).encode())
    assert producer.flush(DEADLINE_S) == 0


def run(settings, sink, number, told):
    """Run the application until so many results are there; end it in order."""
    with SparkEngine(app, "spark.counting_app:app", settings, told.append) as engine:
        topology = app.topology({"words": 100.0})
        engine.start(topology, Plan.here({"count": 1}))
        sink.await_all(Loop(engine, topology, Static(), every_s=1), number)
        engine.drain()


def test_deleted_records_are_named_and_skipped_if_that_is_asked_for(jars, tmp_path):
    with Broker(jars=jars) as broker:
        broker.create_topics({app.topic("words"): 1})
        settings = SparkSettings(
            servers=broker.bootstrap_servers,
            kafka=broker.cluster.options,
            state=tmp_path / "state",
            batch_s=5,
        )
        sink, told = Sink(broker), []
        send(broker, WORDS)
        run(settings, sink, 100, told)
        send(broker, ["gone"] * 60)
        send(broker, WORDS)
        admin, deleted = broker.cluster.client(), TopicPartition(app.topic("words"), 0, 160)
        for done in admin.delete_records([deleted]).values():
            done.result(DEADLINE_S)
        lost = r"deleted 60 records \(counting.words\[0\] offsets 100 to 159\) before"
        with pytest.raises(BadInput, match=lost):
            run(settings, sink, 200, told)
        run(replace(settings, skip_lost=True), sink, 200, told)
        sink.close()
        (said,) = [line for line in told if "skipped" in line]
        assert "60 records (counting.words[0] offsets 100 to 159)" in said
    exact = {word: 2 * number for word, number in Counter(WORDS).items()}
    states = KeyStates(tmp_path / "state").every("count")
    assert {json.loads(state.key)[0]: state.values["n"] for state in states} == exact

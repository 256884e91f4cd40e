"""Spark has lost its last commits, as after a power failure: it does not sync its files."""

import json
from collections import Counter

import pytest
from confluent_kafka import Producer

from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.loop import Loop
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.driver.state.batch_files import batch_numbers
from sojourn.spark.driver.state.key_states import KeyStates
from spark.counting_app import app
from spark.test_full_disk import Sink

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
DEADLINE_S = 180
LOST = 3
CHECKPOINTS = "checkpoints/count", "shared/checkpoints/sink counts"


def commits(checkpoint):
    """Return the batches that Spark has committed."""
    return batch_numbers(checkpoint / "commits")


def run(broker, sink, folder, words):
    """Run the application, in batches of 5 s, until it has counted *words*; end it in order."""
    settings = SparkSettings(
        servers=broker.bootstrap_servers,
        kafka=broker.cluster.options,
        state=folder,
        batch_s=5,
    )
    producer = Producer(broker.cluster.for_clients | {"log_level": 0})
    with SparkEngine(app, "spark.counting_app:app", settings) as engine:
        topology = app.topology({"words": 100.0})
        engine.start(topology, Plan.here({"count": 2}))
        loop = Loop(engine, topology, Static(), every_s=1)
        before = sink.number()
        for place, word in enumerate(words):
            producer.produce(app.topic("words"), json.dumps({"word": word}).encode())
            if place % 50 == 0:
                producer.flush(DEADLINE_S)
                loop.turn()
                sink.read()
        producer.flush(DEADLINE_S)
        sink.await_all(loop, before + len(words))
        while any(len(commits(folder / name)) <= LOST for name in CHECKPOINTS):
            loop.turn()
        engine.drain()
        sink.read()


def lose_commits(checkpoint):
    """Let the last commits be gone, and one more be empty."""
    committed = commits(checkpoint)
    for batch in committed[1 - LOST :]:
        (checkpoint / "commits" / str(batch)).unlink()
        (checkpoint / "offsets" / str(batch)).unlink()
    (checkpoint / "commits" / str(committed[-LOST])).write_bytes(b"")


def test_a_start_goes_back_with_spark_and_states_and_results_are_exact(jars, tmp_path):
    folder, words = tmp_path / "state", [f"word{number % 31}" for number in range(1000)]
    with Broker(jars=jars) as broker:
        broker.create_topics({app.topic("words"): 2})
        sink = Sink(broker)
        run(broker, sink, folder, words)
        for name in CHECKPOINTS:
            lose_commits(folder / name)
        run(broker, sink, folder, words)
        sink.close()
    exact = {word: 2 * number for word, number in Counter(words).items()}
    states = KeyStates(folder).every("count")
    assert {json.loads(state.key)[0]: state.values["n"] for state in states} == exact
    found = {word: sorted(numbers) for word, numbers in sink.numbers.items()}
    assert found == {word: list(range(1, number + 1)) for word, number in exact.items()}

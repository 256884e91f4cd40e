"""An operator on real Spark: topic, task, host, topic; rescaled while it runs; and commits."""

import json
import time

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer

from sojourn.app.operator import OnError
from sojourn.host.controller import Controller
from sojourn.host.server import HostSettings
from sojourn.host.sizes import MOST_BYTES, message_bytes
from sojourn.spark.broker import Broker
from sojourn.spark.cluster import Cluster
from sojourn.spark.dead_letters import DeadLetters
from sojourn.spark.feed import Feed, start_feed
from sojourn.spark.headers import child_headers, lineage_of
from sojourn.spark.real_time import start_real_time
from sojourn.spark.retry import retry_letters
from sojourn.spark.rows import OUTPUT, SCHEMA, Route
from sojourn.spark.session import end_session, new_session

pytestmark = pytest.mark.spark
DEADLINE_S = 180
TOPICS = {"lines": 1, "split": 1, "dead": 1, "nothing": 1, "feeds.dead-letters": 1}


@pytest.fixture(scope="module")
def broker(jars):
    with Broker(jars=jars, secured=False) as running:
        running.create_topics(TOPICS)
        yield running


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("feeds", jars=jars, slots=2)
    yield session
    end_session(session)


def consumed(servers, topic, number):
    """Return the first *number* messages of a topic: payload and headers."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found, until_s = [], time.monotonic() + DEADLINE_S
    while len(found) < number and time.monotonic() < until_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.value(), dict(message.headers() or [])))
    consumer.close()
    return found


def test_records_pass_through_spark_and_a_host_that_is_rescaled(
    broker, spark, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", "tests")
    settings = HostSettings(
        name="split",
        job="sojourn.host.operator_job:of_application",
        argument="unit.host.application:app split",
        folder=tmp_path / "split",
        on_error=OnError(then="dead_letter"),
    )
    with Controller(tmp_path / "hosts") as controller:
        host = controller.start(settings)
        query = start_feed(
            spark,
            Feed(
                route=Route(
                    operator="split",
                    reads={"lines": "lines"},
                    writes={"split": "split"},
                    dead_letters="feeds.dead-letters",
                ),
                kafka=Cluster(broker.bootstrap_servers).for_spark,
                host=host,
                checkpoint=tmp_path / "checkpoint",
                batch_s=10,
            ),
        )
        try:
            producer = Producer(
                {"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 2 << 20}
            )
            for number in range(60):
                producer.produce("lines", json.dumps({"line": f"a{number} b{number}"}))
                if number == 20:
                    controller.scale("split", 4)
            producer.produce("lines", b"a stranger wrote this")
            # Kafka just takes what comes of this one, with all that it carries
            word = "w" * (room() - len('{"word":"<>"}') - 30)
            producer.produce("lines", json.dumps({"line": word}))
            producer.flush()
            found = consumed(broker.bootstrap_servers, "split", 121)
            controller.await_running("split", 4)
            letters = DeadLetters("feeds", {"bootstrap.servers": broker.bootstrap_servers})
            (first,) = awaited(letters)
            assert list(retry_letters(letters, [first])) == [(first, "")]
            (again,) = awaited(letters)
            assert query.exception() is None
            controller.ask()
            while "split" not in controller.reported():
                time.sleep(0.01)
        finally:
            query.stop()
        tallies = controller.tallies()["split"]
    words = sorted((json.loads(payload)["word"] for payload, _ in found), key=len)
    assert words.pop() == f"<{word}>"
    assert sorted(words) == sorted(f"<{letter}{n}>" for letter in "ab" for n in range(60))
    assert len({headers["sojourn-id"] for _, headers in found}) == 121
    assert {headers["sojourn-root"] for _, headers in found} == {
        f"lines/0/{n}".encode() for n in (*range(60), 61)
    }
    assert "is not JSON" in first.error
    assert first.value == b"a stranger wrote this"
    # put back in, it is the same record, and fails for the same reason
    assert (again.came_from, again.record) == ("lines/0/62", first.record)
    assert (again.value, again.error) == (first.value, first.error)
    assert sum(counts.served for tally in tallies for counts in tally.processors) == 63


def room():
    """Return how large a word may be."""
    root = lineage_of([], topic="lines", partition=0, offset=61, timestamp_s=time.time())
    headers = child_headers(root, "split", 10**9, time.time(), {})
    return MOST_BYTES - message_bytes(None, b"", headers)


def awaited(letters):
    """Return the dead letters that were not put back in, once there are any."""
    until_s = time.monotonic() + DEADLINE_S
    while not (found := letters.found()):
        assert time.monotonic() < until_s
        time.sleep(0.2)
    return found


def noted(commits):
    """Return what runs in a task, and tells whether the batch before is committed by then."""

    def run(batches):
        from pyspark import TaskContext  # noqa: PLC0415 - only a Spark task has one

        number = int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))
        told = {"batch": number, "committed": (commits / str(number - 1)).exists()}
        row = {"topic": "nothing", "value": json.dumps(told).encode(), "headers": None}
        yield pa.RecordBatch.from_pylist([row], SCHEMA)
        for _ in batches:
            pass

    return run


def test_a_batch_begins_when_the_one_before_is_committed(broker, spark, tmp_path):
    kafka = Cluster(broker.bootstrap_servers).for_spark
    commits = tmp_path / "commits"
    for log in ("commits", "offsets"):  # as Spark leaves them when it is killed
        (tmp_path / log).mkdir()
        (tmp_path / log / ".0.1b671a64-40d5-491e-99b0-da01ff1f3341.tmp").write_text("v1")
    source = spark.readStream.format("kafka").options(**kafka).option("subscribe", "lines")
    query = start_real_time(
        source.load().select("value").mapInArrow(noted(commits), OUTPUT),
        name="noted",
        kafka=kafka,
        checkpoint=tmp_path,
        batch_s=5,
    )
    try:
        found = consumed(broker.bootstrap_servers, "nothing", 4)
        assert query.exception() is None
    finally:
        query.stop()
    told = [json.loads(value) for value, _ in found]
    assert told == [{"batch": n, "committed": n > 0} for n in range(4)]

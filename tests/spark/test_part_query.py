"""A part on real Spark: topic, task, host, topic; rescaled while it runs; cuts and commits."""

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer

from sojourn.app.loading import load
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.jvm.session import end_session, new_session, tasks_of
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.dead_letters import DeadLetters
from sojourn.spark.driver.kafka.retry import retry_letters
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.query.part_query import PartQuery, part_frame
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.task.rows import OUTPUT, SCHEMA
from sojourn.spark.wire.record import Root

pytestmark = pytest.mark.spark
DEADLINE_S = 180
TOPICS = (
    "lines",
    "nothing",
    "words.lines",
    "words.shout",
    "words.dead-letters",
    "words.retries",
)


@pytest.fixture(scope="module", autouse=True)
def _topics(broker):
    broker.create_topics(dict.fromkeys(TOPICS, 1))


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("parts", jars=jars, slots=4)
    yield session
    end_session(session)


def consumed(servers, topic, number):
    """Return the first *number* messages of a topic: payload and headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic} {number}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found, until_s = [], time.monotonic() + DEADLINE_S
    while len(found) < number and time.monotonic() < until_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.value(), dict(message.headers() or [])))
    consumer.close()
    return found


class Running:
    """The only part of an application: its host, and the query that brings its records."""

    def __init__(self, broker, spark, folder):
        self.layout = Layout(load("words_app:app"), "words_app:app")
        self.state, self.folder, self.spark = Checkpoints(folder / "state"), folder, spark
        (self.part,) = self.layout.parts
        self.kafka = Cluster(broker.bootstrap_servers).for_spark

    def settings(self, **allocation):
        return self.layout.host(self.part, self.folder, self.state, allocation)

    def query(self):
        route = self.layout.route(
            self.part,
            trace_per_s=100.0,
            most_bytes=1 << 20,
            marks={},
            partitions={},
            signing_key=b"a key of this application",
        )
        part = PartQuery(
            route=route,
            kafka=self.kafka,
            host=self.layout.addresses(self.folder)[self.part],
            batch_s=5,
        )
        return start_real_time(
            part_frame(self.spark, part),
            name=self.part,
            kafka=self.kafka,
            checkpoint=self.state.checkpoint(self.part),
            batch_s=5,
        )

    @property
    def cut(self):
        """The cut of the last batch that is committed."""
        files = CutFiles(self.state.cuts(self.part))
        return files.load(files.last(self.state.commits(self.part) - 1))


@pytest.fixture
def running(broker, spark, tmp_path, monkeypatch):
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", here)
    monkeypatch.setenv("WORDS_HURRY", str(tmp_path / "hurry"))
    return Running(broker, spark, tmp_path)


def produce(broker, topic, *values):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    producer.flush()


def until(condition):
    """Return when it holds."""
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.1)


def test_records_pass_from_operator_to_operator_and_a_killed_host_goes_on_from_its_cut(
    broker, spark, running, tmp_path
):
    """Two operators in one host: rescaled, with a dead letter put back in, and killed."""
    lines = [json.dumps({"line": f"a{n} b{n}"}) for n in range(30)]
    letters = DeadLetters("words", {"bootstrap.servers": broker.bootstrap_servers})
    with Controller(tmp_path / "hosts", tasks=partial(tasks_of, spark)) as controller:
        controller.start(running.settings(split=1, shout=1))
        query = running.query()
        try:
            produce(broker, "words.lines", *lines[:15])
            controller.scale("shout", 3)
            produce(broker, "words.lines", *lines[15:], json.dumps({"line": "mute"}))
            found = consumed(broker.bootstrap_servers, "words.shout", 60)
            controller.await_running("shout", 3)
            (first,) = awaited(letters)
            assert list(retry_letters(letters, [first])) == [(first, "")]
            (again,) = awaited(letters)
            assert query.exception() is None
            # what is open when a batch ends is on disk, and a host in its place goes on with it
            produce(broker, "words.lines", json.dumps({"line": "slow"}))
            until(lambda: running.state.commits(running.part) > 1 and running.cut.open)
            (waiting,) = running.cut.open
            os.kill(controller.pid("shout"), signal.SIGKILL)
            until(lambda: query.exception() is not None)
        finally:
            query.stop()
        assert "its host" in str(query.exception())
        (tmp_path / "hurry").touch()
        controller.start(running.settings(split=1, shout=1))
        query = running.query()
        try:
            produce(broker, "words.lines", json.dumps({"line": "last"}))
            more = consumed(broker.bootstrap_servers, "words.shout", 62)
            assert query.exception() is None
        finally:
            query.stop()
    words = [json.loads(payload)["word"] for payload, _ in found]
    assert sorted(words) == sorted(f"{letter}{n}!" for letter in "AB" for n in range(30))
    assert len({headers["sojourn-id"] for _, headers in found}) == 60
    assert {headers["sojourn-root"] for _, headers in found} == {
        f"words.lines/0/{n}".encode() for n in range(30)
    }
    # nobody drops duplicates of this stream, so records do not carry what that takes
    assert not any("sojourn-input" in headers for _, headers in found)
    assert (first.operator, first.stream, first.inner) == ("shout", "split", True)
    assert "no voice" in first.error
    # put back in, it is the same record, and fails for the same reason
    assert (again.record, again.value, again.inner) == (first.record, first.value, True)
    assert (waiting.operator, waiting.record.name) == ("shout", "words.lines/0/31.split.0")
    assert waiting.root == Root(("words.lines", 0), 31)
    assert {json.loads(payload)["word"] for payload, _ in more} - set(words) == {
        "SLOW!",
        "LAST!",
    }


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

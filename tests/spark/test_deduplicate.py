"""Sinks at which nothing arrives twice, on a real broker."""

import time

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import functions as sql

from sojourn.errors import BrokerFailed
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.id_epoch import root_marks
from sojourn.spark.driver.native.headers import lineage_headers
from sojourn.spark.driver.query.part_query import deduplicated_frame
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.task import sink_topic as module
from sojourn.spark.task.deduplication import Deduplication, new_alone
from sojourn.spark.task.rows import SCHEMA
from sojourn.spark.task.sink_memory import SinkMemory
from sojourn.spark.task.sink_topic import SinkTopic
from sojourn.spark.wire.headers import child_identity
from sojourn.spark.wire.repetitions import Input
from sojourn.spark.wire.signed_inputs import SignedInputs

pytestmark = pytest.mark.spark
DEADLINE_S = 120
SIGNED = SignedInputs(b"key", frozenset(["lines@m"]))


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("sinks", jars=jars, slots=4)
    yield session
    end_session(session)


@pytest.fixture
def clients(broker, monkeypatch):
    """Return the settings of clients; whoever waits for what does not come waits too long."""
    monkeypatch.setattr(module, "_ANSWER_S", 1000.0)
    return Cluster(broker.bootstrap_servers).for_clients


def write(clients, topic, ids, *, partition=0, ended="", at_ms=None):
    """Write records with *ids* (or none, if ""), in a transaction that is *ended* like that.

    Their keys are the same.
    """
    own = {"transactional.id": f"{topic} {ids[0]}"} if ended else {}
    producer = Producer({**clients, **own})
    if ended:
        producer.init_transactions()
        producer.begin_transaction()
    for identity in ids:
        producer.produce(
            topic,
            b"{}",
            identity or None,
            partition=partition,
            headers=[("sojourn-id", identity.encode())] if identity else [],
            timestamp=at_ms or int(time.time() * 1000),
        )
    if ended:
        producer.flush()
        getattr(producer, f"{ended}_transaction")()
    assert producer.flush(30) == 0


def write_results(clients, topic, results, *, partitions):
    """Write what came of roots, by their partition and offset, with a floor, as relays do."""
    producer = Producer(clients)
    for source, offset, floor, place in results:
        entered = Input(
            writer="split", topic="lines@m", partition=source, offset=offset, floor=floor
        )
        headers = [
            ("sojourn-id", f"{entered.position}.split.{place}".encode()),
            ("sojourn-root", entered.position.encode()),
            *SIGNED.header(entered),
        ]
        producer.produce(topic, b"{}", partition=source % partitions, headers=headers)
    assert producer.flush(30) == 0


def delete(clients, topic, parts):
    """Delete all records that *topic* has."""
    client = Cluster(clients["bootstrap.servers"]).client()
    ends = [TopicPartition(topic, part, -1) for part in range(parts)]  # as Kafka says "all"
    for deleted in client.delete_records(ends).values():
        deleted.result(30)


def make_anew(broker, topic):
    client = Cluster(broker.bootstrap_servers).client()
    client.delete_topics([topic])[topic].result(30)
    eventually(lambda: topic not in client.list_topics(timeout=30).topics, "it is deleted")
    broker.create_topics({topic: 1})


def eventually(condition, what):
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.05)


def sink(broker, checkpoint, **others):
    cluster = Cluster(broker.bootstrap_servers)
    settings = {"window": 1000, "mark": "m", **others}
    return Deduplication(
        checkpoint=checkpoint,
        clients=cluster.for_clients,
        spark=cluster.for_spark,
        **settings,
    )


def started(spark, once, batch_s=5):
    return start_real_time(
        deduplicated_frame(spark, once),
        name="sink once",
        kafka=once.spark,
        checkpoint=once.checkpoint,
        batch_s=batch_s,
    )


class Arrivals:
    """What has arrived at a topic, by partition."""

    def __init__(self, clients, topic):
        self._reader = Consumer(
            {**clients, "group.id": "test", "auto.offset.reset": "earliest"}
        )
        self._reader.subscribe([topic])
        self.ids, self.keys = {}, []

    def has(self, identity):
        message = self._reader.poll(0.1)
        if message is not None and message.error() is None:
            told = dict(message.headers())["sojourn-id"].decode()
            self.ids.setdefault(message.partition(), []).append(told)
            self.keys.append(message.key())
        return any(identity in ids for ids in self.ids.values())

    def close(self):
        self._reader.close()


@pytest.fixture
def arrivals(clients):
    """Return what has arrived at the topic `once`."""
    opened = []

    def of(topic):
        opened.append(Arrivals(clients, topic))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


def await_batches(state, number):
    until = state.commits("sink once") + number
    eventually(lambda: state.commits("sink once") >= until, "batches end")


@pytest.mark.timeout(60)
def test_a_few_records_are_read_without_waiting_for_more(broker, clients):
    broker.create_topics({"few": 1, "none": 1})
    write(clients, "few", ["a", "b", "", "c"])
    few, none = SinkTopic("few", clients), SinkTopic("none", clients)
    assert few.last(0, 1000) == ["a", "b", "c"]
    assert few.last(0, 2) == ["c"]
    assert few.since(0, 1) == ["b", "c"]
    assert few.since(0, few.end(0)) == []
    assert (none.last(0, 1000), none.since(0, 0), none.end(0)) == ([], [], 0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ended", ["commit", "abort"])
def test_the_last_offset_may_be_the_end_of_a_transaction(broker, clients, ended):
    broker.create_topics({ended: 1})
    write(clients, ended, ["a", "b"], ended=ended)
    topic = SinkTopic(ended, clients)
    assert topic.since(0, 0) == ["a", "b"]
    end = topic.end(0)
    write(clients, ended, ["c"], ended=ended)
    assert topic.since(0, end) == ["c"]


@pytest.mark.timeout(60)
def test_what_was_deleted_from_a_sink_is_not_waited_for(broker, clients):
    broker.create_topics({"read": 1})
    write(clients, "read", ["a", "b"])
    delete(clients, "read", 1)
    write(clients, "read", ["c", "d"])
    assert SinkTopic("read", clients).since(0, 1) == ["c", "d"]
    assert SinkTopic("read", clients).last(0, 3) == ["c", "d"]


@pytest.mark.timeout(60)
def test_a_topic_that_was_made_anew_is_read_from_its_begin(broker, clients):
    broker.create_topics({"anew": 1})
    write(clients, "anew", ["a", "b"])
    end = SinkTopic("anew", clients).end(0)
    make_anew(broker, "anew")
    write(clients, "anew", ["c"])
    assert SinkTopic("anew", clients).since(0, end) == ["c"]


@pytest.mark.timeout(60)
def test_the_last_records_are_those_of_all_partitions(broker, clients):
    broker.create_topics({"parts": 3})
    now_ms = int(time.time() * 1000)
    # the partition that is read last has the oldest
    write(clients, "parts", ["a", "b"], partition=2, at_ms=now_ms - 2000)
    write(clients, "parts", ["c", "d"], partition=0, at_ms=now_ms - 1000)
    write(clients, "parts", ["e"], partition=1, at_ms=now_ms)
    parts = SinkTopic("parts", clients)
    assert parts.last(0, 3) == ["c", "d", "e"]
    write(clients, "parts", ["f"], partition=2, at_ms=now_ms + 1000)
    assert parts.last(2, 3) == ["d", "e", "f"]
    assert (parts.since(2, 1), parts.end(2)) == (["b", "f"], 3)


@pytest.mark.timeout(60)
def test_a_task_passes_on_what_is_not_at_the_sink_and_remembers_it(broker, clients, tmp_path):
    broker.create_topics({"alone": 1})
    write(clients, "alone", ["a"])
    sink = Deduplication(
        reads="twice",
        writes="alone",
        window=10,
        checkpoint=tmp_path,
        clients=clients,
        spark={},
    )

    def passed(offset, *ids):
        """Return what one batch passes on, the first of which is at *offset*."""
        record = pa.struct([*(field for field in SCHEMA), pa.field("offset", pa.int64())])
        rows = [
            {
                "partition": 0,
                "offset": offset + number,
                "value": b"",
                "headers": [{"key": "sojourn-id", "value": each.encode()}],
            }
            for number, each in enumerate(ids)
        ]
        batches = [pa.record_batch({"record": pa.array([None, *rows], record)})]
        batches.insert(0, pa.record_batch({"record": pa.array([None], record)}))
        left = pa.Table.from_batches(new_alone(sink)(batches), SCHEMA).to_pylist()
        assert {row["topic"] for row in left} <= {"alone"}
        return [dict(row["headers"][0].items())["value"].decode() for row in left]

    assert passed(0, "a", "b", "b", "c") == ["b", "c"]
    assert passed(4, "c", "d") == ["d"]  # the batch before was committed
    write(clients, "alone", ["e"])  # by a first attempt at the next one, which failed
    SinkMemory(tmp_path / "memory").note_sink_end(0, 6, SinkTopic("alone", clients).end(0) - 1)
    assert passed(6, "e", "f") == ["f"]


def test_a_topic_that_is_made_anew_has_another_mark(broker):
    broker.create_topics({"marked": 1, "other": 1})
    client = Cluster(broker.bootstrap_servers).client()
    before, again = (root_marks(client, ["marked", "other"], "epoch") for _ in range(2))
    assert before == again
    assert before["marked"] != before["other"]
    make_anew(broker, "marked")
    after = root_marks(client, ["marked", "other"], "epoch")
    assert after["marked"] != before["marked"]
    assert after["other"] == before["other"]
    assert root_marks(client, ["other"], "next epoch") != {"other": before["other"]}


def test_a_topic_that_is_not_there_has_no_mark(broker):
    client = Cluster(broker.bootstrap_servers).client()
    with pytest.raises(BrokerFailed, match=r"topics cannot be described: .*UNKNOWN_TOPIC"):
        root_marks(client, ["nowhere"], "epoch")


def test_spark_gives_children_the_ids_that_hosts_give(spark):
    source = "headers array<struct<key: string, value: binary>>, topic string, partition int, "
    source += "offset long, timestamp timestamp"
    root = "lines@mark/0/7"
    steps = (".split.0" * n for n in (0, 1, 18, 19, 20, 21, 100))
    told = [(root, root + step) for step in steps]
    told += [("r\U0001f600", "\u00fc\U0001f600" * n) for n in (60, 76, 77, 78, 79, 160)]
    rows = [
        ([("sojourn-id", i.encode()), ("sojourn-root", r.encode())], "lines", 0, 7, None)
        for r, i in told
    ]
    rows.append(([("sojourn-id", b"order-1")], "lines", 0, 7, None))
    rows.append(([], "lines", 0, 7, None))
    frame = spark.createDataFrame(rows, source)
    headers = lineage_headers(sql.struct(*frame.columns), sql.lit(".split.0"), "mark")
    found = [dict(row[0])["sojourn-id"].decode() for row in frame.select(headers).collect()]
    assert found == [
        *(child_identity(identity, "split", 0, root=root) for root, identity in told),
        "order-1.split.0",
        "lines@mark/0/7.split.0",
    ]
    roots = [dict(row[0])["sojourn-root"].decode() for row in frame.select(headers).collect()]
    assert roots == [*(root for root, _ in told), "order-1", "lines@mark/0/7"]
    assert sum("~" in identity for identity in found) == 6


def test_what_comes_twice_leaves_once_in_whatever_batch(
    broker, clients, spark, tmp_path, arrivals
):
    broker.create_topics({"twice": 1, "once": 2})
    state = Checkpoints(tmp_path)
    once = sink(broker, state.checkpoint("sink once"), reads="twice", writes="once")
    write(clients, "twice", ["a", "b", "a"])
    arrived = arrivals("once")
    query = started(spark, once)
    try:
        eventually(lambda: arrived.has("b"), "records pass")
        # the next batch to be committed may have begun before; the one after it has not
        await_batches(state, 2)
        delete(clients, "once", 2)
        write(clients, "twice", ["b", "c", "a", "d"])
        eventually(lambda: arrived.has("d"), "records pass")
        await_batches(state, 1)
        assert query.exception() is None
    finally:
        query.stop()
    # no batch of these is committed: all of it comes again
    for last in ("e", "f"):
        query = started(spark, once, batch_s=600)
        try:
            write(clients, "twice", ["", last])
            eventually(lambda last=last: arrived.has(last), "records pass")
            assert query.exception() is None
        finally:
            query.stop()
    assert arrived.ids.keys() == {0}, "the partition is that of the stream"
    assert sorted(arrived.ids[0]) == [*"abcdef", "twice@m/0/7", "twice@m/0/9"]
    assert sorted(filter(None, arrived.keys)) == [b"a", b"b", b"c", b"d", b"e", b"f"]


@pytest.mark.slow
def test_a_result_is_known_again_however_long_its_root_was_open(
    broker, clients, spark, tmp_path, arrivals
):
    """Many more records than the window lie between; and the query fails with many written."""
    partitions, sources = 2, range(3)
    broker.create_topics({"results": partitions, "results-once": partitions})
    state = Checkpoints(tmp_path)
    once = sink(
        broker,
        state.checkpoint("sink once"),
        reads="results",
        writes="results-once",
        window=2,
        inputs=SIGNED,
    )
    arrived = arrivals("results-once")

    def write_all(results):
        write_results(clients, "results", results, partitions=partitions)

    def await_result(offset, place):
        for source in sources:
            name = f"lines@m/{source}/{offset}.split.{place}"
            eventually(lambda name=name: arrived.has(name), f"{name} passes")

    write_all([(source, 0, 0, 0) for source in sources])
    query = started(spark, once)
    try:
        await_result(0, 0)
        await_batches(state, 2)
        write_all([(source, offset, 0, 0) for offset in range(1, 50) for source in sources])
        await_result(49, 0)
        await_batches(state, 2)
        # again with the old floor, and a result of the same root that is new
        write_all([(source, 0, 0, place) for place in (0, 1) for source in sources])
        await_result(0, 1)
        await_batches(state, 2)
        assert query.exception() is None
    finally:
        query.stop()
    # no batch of these is committed: all of it comes again
    for last in (90, 99):
        query = started(spark, once, batch_s=600)
        try:
            # a floor has risen; what a task of before still writes is below it
            write_all(
                [(source, offset, 40, 0) for source in sources for offset in range(45, 80)]
            )
            write_all([(source, offset, 0, 0) for source in sources for offset in (0, 7, 45)])
            write_all([(source, last, 40, 0) for source in sources])
            await_result(last, 0)
            assert query.exception() is None
        finally:
            query.stop()
    places = [(offset, 0) for offset in (*range(80), 90, 99)] + [(0, 1)]
    for partition in range(partitions):
        assert sorted(arrived.ids[partition]) == sorted(
            f"lines@m/{source}/{offset}.split.{place}"
            for source in sources
            if source % partitions == partition
            for offset, place in places
        )


def test_a_partition_that_the_sink_does_not_have_is_refused(broker, clients, spark, tmp_path):
    broker.create_topics({"grown": 2, "out": 1})
    write(clients, "grown", ["a"], partition=1)
    query = started(spark, sink(broker, tmp_path, reads="grown", writes="out"))
    try:
        eventually(lambda: query.exception() is not None, "it fails")
        assert "out has 1 partitions, but the stream that is written to it has more" in str(
            query.exception()
        )
    finally:
        query.stop()

"""Sinks at which nothing arrives twice, on a real broker."""

import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from sojourn.spark import sink_end as module
from sojourn.spark.broker import Broker
from sojourn.spark.cluster import Cluster
from sojourn.spark.kept_state import KeptState
from sojourn.spark.once import Once, start_once
from sojourn.spark.session import end_session, new_session
from sojourn.spark.sink_end import SinkEnd, sink_end

pytestmark = pytest.mark.spark
DEADLINE_S = 120


@pytest.fixture(scope="module")
def broker(jars):
    with Broker(jars=jars) as running:
        yield running


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("sinks", jars=jars, slots=1)
    yield session
    end_session(session)


@pytest.fixture
def clients(broker, monkeypatch):
    """Return the settings of clients; whoever waits for what does not come waits too long."""
    monkeypatch.setattr(module, "_ANSWER_S", 1000.0)
    monkeypatch.setattr(module, "_held", {})
    return Cluster(broker.bootstrap_servers).for_clients


def write(clients, topic, ids, *, partition=0, ended="", at_ms=None):
    """Write records with *ids*, in a transaction that is *ended* as it says."""
    own = {"transactional.id": f"{topic} {ids[0]}"} if ended else {}
    producer = Producer({**clients, **own})
    if ended:
        producer.init_transactions()
        producer.begin_transaction()
    for identity in ids:
        producer.produce(
            topic,
            b"{}",
            partition=partition,
            headers=[("sojourn-id", identity.encode())],
            timestamp=at_ms or int(time.time() * 1000),
        )
    if ended:
        producer.flush()
        getattr(producer, f"{ended}_transaction")()
    assert producer.flush(30) == 0


def delete(clients, topic, parts):
    """Delete all records that *topic* has."""
    client = Cluster(clients["bootstrap.servers"]).client()
    ends = [TopicPartition(topic, part, -1) for part in range(parts)]  # as Kafka says "all"
    for deleted in client.delete_records(ends).values():
        deleted.result(30)


def eventually(condition, what):
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.05)


def held(end, ids):
    return [identity for identity in ids if identity in end]


@pytest.mark.timeout(60)
def test_a_few_records_are_read_without_waiting_for_more(broker, clients):
    broker.create_topics({"few": 1, "none": 1})
    write(clients, "few", ["a", "b", "c"])
    assert held(sink_end(clients, "few", 1000), "abcd") == ["a", "b", "c"]
    assert held(sink_end(clients, "few", 2), "abcd") == ["b", "c"]
    assert held(sink_end(clients, "none", 1000), "abcd") == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ended", ["commit", "abort"])
def test_the_last_offset_may_be_the_end_of_a_transaction(broker, clients, ended):
    broker.create_topics({ended: 1})
    write(clients, ended, ["a", "b"], ended=ended)
    end = SinkEnd(ended, 1000)
    assert end.read(clients) == 2
    write(clients, ended, ["c"], ended=ended)
    assert end.read(clients) == 1
    assert held(end, "abcd") == ["a", "b", "c"]


@pytest.mark.timeout(60)
def test_what_was_read_is_not_read_again(broker, clients):
    broker.create_topics({"read": 1})
    write(clients, "read", ["a", "b"])
    assert held(sink_end(clients, "read", 3), "abcd") == ["a", "b"]
    delete(clients, "read", 1)
    write(clients, "read", ["c", "d"])
    assert held(sink_end(clients, "read", 3), "abcd") == ["b", "c", "d"]


@pytest.mark.timeout(60)
def test_a_topic_that_was_made_anew_is_read_from_its_begin(broker, clients):
    broker.create_topics({"anew": 1})
    write(clients, "anew", ["a", "b"])
    end = sink_end(clients, "anew", 10)
    client = Cluster(broker.bootstrap_servers).client()
    client.delete_topics(["anew"])["anew"].result(30)
    while "anew" in client.list_topics(timeout=30).topics:
        time.sleep(0.05)
    broker.create_topics({"anew": 1})
    write(clients, "anew", ["c"])
    assert end.read(clients) == 1
    assert held(end, "abc") == ["c"]


@pytest.mark.timeout(60)
def test_the_last_records_are_those_of_all_partitions(broker, clients):
    broker.create_topics({"parts": 3})
    now_ms = int(time.time() * 1000)
    # the partition that is read last has the oldest
    write(clients, "parts", ["a", "b"], partition=2, at_ms=now_ms - 2000)
    write(clients, "parts", ["c", "d"], partition=0, at_ms=now_ms - 1000)
    write(clients, "parts", ["e"], partition=1, at_ms=now_ms)
    assert held(sink_end(clients, "parts", 3), "abcde") == ["c", "d", "e"]
    write(clients, "parts", ["f"], partition=2, at_ms=now_ms + 1000)
    assert held(sink_end(clients, "parts", 3), "abcdef") == ["d", "e", "f"]


def test_what_comes_twice_leaves_once_in_whatever_batch(broker, clients, spark, tmp_path):
    broker.create_topics({"twice": 1, "once": 2})
    cluster, state = Cluster(broker.bootstrap_servers), KeptState(tmp_path)
    once = Once(
        name="once",
        reads="twice",
        writes="once",
        window=1000,
        checkpoint=state.checkpoint("sink once"),
        clients=cluster.for_clients,
        spark=cluster.for_spark,
        batch_s=5,
    )
    write(clients, "twice", ["a", "b", "a"])
    reader = Consumer({**clients, "group.id": "test", "auto.offset.reset": "earliest"})
    reader.subscribe(["once"])
    arrived = []

    def came(identity):
        message = reader.poll(0.1)
        if message is not None and message.error() is None:
            arrived.append(dict(message.headers())["sojourn-id"].decode())
        return identity in arrived

    query = start_once(spark, once)
    try:
        eventually(lambda: came("b"), "records pass")
        begun = state.commits("sink once")
        # the next batch to be committed may have begun before; the one after it has not
        eventually(lambda: state.commits("sink once") > begun + 1, "batches end")
        delete(clients, "once", 2)
        write(clients, "twice", ["b", "c", "a", "d"])
        eventually(lambda: came("d"), "records pass")
        assert query.exception() is None
    finally:
        query.stop()
        reader.close()
    assert sorted(arrived) == ["a", "b", "c", "d"]

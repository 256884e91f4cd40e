"""Records go to Python together while more are waiting, and none waits for nothing."""

import time

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import functions as sql

from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.query.real_time import (
    KnownEnds,
    start_real_time,
    transferred,
    without_end_rows,
)
from sojourn.spark.task.rows import OUTPUT, SCHEMA, end_row

pytestmark = pytest.mark.spark
# So long that nothing comes because a batch has ended.
BATCH_S = 3600.0
DEADLINE_S = 120.0
RECORDS = 300


@pytest.fixture(scope="module", autouse=True)
def _topics(broker):
    broker.create_topics(dict.fromkeys(("told", "told-sizes", "untold", "untold-sizes"), 1))


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("transfers", jars=jars, slots=4)
    yield session
    end_session(session)


def send(broker, topic, number):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(number):
        producer.produce(topic, b"x" * 100)
    assert producer.flush(30) == 0


def sizes():
    """Return what yields the sizes of transfers; inside, so that Spark can send it."""

    def run(batches):
        schema = pa.schema([("value", pa.binary())])
        for batch in batches:
            if number := len(batch) - batch.column(0).null_count:
                yield pa.RecordBatch.from_pylist([{"value": b"%d" % number}], schema)

    return run


def started(broker, spark, topic, ends, folder):
    """Return the query that writes the sizes of transfers to a topic of their own."""
    kafka = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    source = (
        spark.newSession()
        .readStream.format("kafka")
        .options(**kafka)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    rows = transferred(source, sql.struct("value", "offset"), ends)
    counted = rows.mapInArrow(sizes(), "value binary")
    addressed = counted.select(sql.lit(f"{topic}-sizes").alias("topic"), "value")
    return start_real_time(
        addressed, name=topic, kafka=kafka, checkpoint=folder, batch_s=BATCH_S
    )


def arrived(broker, topic, number):
    """Return the sizes of transfers, once they make up so many records."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic})
    reader.assign([TopicPartition(topic, 0, 0)])
    found, until_s = [], time.monotonic() + DEADLINE_S
    while sum(found) < number and time.monotonic() < until_s:
        found += [int(message.value()) for message in reader.consume(100, 0.1)]
    reader.close()
    return found


@pytest.mark.timeout(300)
def test_records_go_together_while_more_are_known_to_follow(broker, spark, tmp_path):
    send(broker, "told", RECORDS)
    KnownEnds(spark, "known", ["told"]).tell({"told": {0: RECORDS}, "other": {0: 7}})
    query = started(broker, spark, "told", "known", tmp_path)
    try:
        found = arrived(broker, "told-sizes", RECORDS)
        assert sum(found) == RECORDS
        assert max(found) > 10
        assert found[-7:] == [1] * 7  # nobody knows whether others follow those
        send(broker, "told", 2)  # of which nothing is told
        assert sum(arrived(broker, "told-sizes", RECORDS + 2)) == RECORDS + 2
    finally:
        query.stop()


def results():
    """Return what yields results with a row that tells Java something among them."""

    def run(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                word = {"topic": "words", "partition": None, "key": None, "value": b"one"}
                rows = [word | {"headers": []}, end_row("told", ("lines", number), 700)]
                yield pa.RecordBatch.from_pylist([*rows, *rows[:1]], SCHEMA)

    return run


def test_what_rows_among_results_tell_is_known_to_java_and_is_no_result(spark):
    told = without_end_rows(spark.range(2).mapInArrow(results(), OUTPUT)).collect()
    assert [(row.topic, row.key, bytes(row.value)) for row in told] == 4 * [
        ("words", None, b"one")
    ]
    known = "reflect('java.lang.System', 'getProperty', 'told/lines/{}')"
    (row,) = spark.sql(f"SELECT {known.format(0)}, {known.format(1)}").collect()
    assert list(row) == ["700", "700"]


@pytest.mark.timeout(300)
def test_each_goes_at_once_where_nothing_is_known(broker, spark, tmp_path):
    send(broker, "untold", 20)
    query = started(broker, spark, "untold", "", tmp_path)
    try:
        assert arrived(broker, "untold-sizes", 20) == [1] * 20
    finally:
        query.stop()

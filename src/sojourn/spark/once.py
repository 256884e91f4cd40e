"""A sink at which nothing arrives twice, as far back as it remembers.

What it remembers is what the sink itself holds: its last records are read again whenever a
batch begins, so that neither a failure in between nor another start makes it forget.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.errors import EngineError
from sojourn.spark.headers import identity_of
from sojourn.spark.real_time import start_real_time
from sojourn.spark.relay import OUTPUT, SCHEMA

__all__ = ["Once", "Remembered", "start_once"]

_ANSWER_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """What a sink reads and writes; *clients* and *spark* are options for either to Kafka."""

    name: str
    reads: str
    writes: str
    window: int
    checkpoint: Path
    clients: Mapping[str, str] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)
    starting: str = "earliest"
    batch_s: float = 60.0


class Remembered:
    """The identities of the last *window* records.

    >>> remembered = Remembered(2)
    >>> [remembered.is_new(identity) for identity in ("a", "b", "a", "c", "b", "a")]
    [True, True, False, True, False, True]
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._known: OrderedDict[str, None] = OrderedDict()

    def is_new(self, identity: str) -> bool:
        """Return whether *identity* was not seen before, and remember it."""
        if identity in self._known:
            return False
        self._known[identity] = None
        if len(self._known) > self._window:
            self._known.popitem(last=False)
        return True


def start_once(spark: SparkSession, once: Once) -> StreamingQuery:
    """Return the running query that writes what is new."""
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 1)
    source = (
        session.readStream.format("kafka")
        .options(**once.spark)
        .option("subscribe", once.reads)
        .option("startingOffsets", once.starting)
        .option("includeHeaders", "true")
        .load()
    )
    # each record is followed by an empty one, as in a feed
    record = sql.struct("value", "headers")
    marked = source.select(sql.explode(sql.array(record, sql.lit(None))).alias("record"))
    return start_real_time(
        marked.mapInArrow(_new_alone(once), OUTPUT),
        name=f"sink {once.name}",
        kafka=once.spark,
        checkpoint=once.checkpoint,
        batch_s=once.batch_s,
    )


def _new_alone(
    once: Once,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what passes on the records that are not at the sink yet."""
    clients, writes, window = dict(once.clients), once.writes, once.window

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remembered = _at_sink(clients, writes, window)
        for batch in batches:
            rows = [row for row in batch.column(0).to_pylist() if row is not None]
            new = [
                {"topic": writes, "value": row["value"], "headers": row["headers"]}
                for row in rows
                # Spark's own aggregations write records that are none of any other
                if (identity := identity_of(row["headers"])) is None
                or remembered.is_new(identity)
            ]
            if new:
                yield pa.RecordBatch.from_pylist(new, SCHEMA)

    return run


def _at_sink(clients: Mapping[str, str], topic: str, window: int) -> Remembered:
    """Return what the end of *topic* holds."""
    remembered = Remembered(window)
    reader = Consumer(
        {**clients, "group.id": "sojourn", "enable.auto.commit": "false", "log_level": 0}
    )
    try:
        parts = reader.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions
        left: dict[int, int] = {}
        places = []
        for part in parts:
            place = TopicPartition(topic, part)
            first, end = reader.get_watermark_offsets(place, timeout=_ANSWER_S)
            place.offset = max(first, end - window)
            if place.offset < end:
                left[part] = end
                places.append(place)
        reader.assign(places)
        while left:
            messages = reader.consume(1000, _ANSWER_S)
            if not messages:
                raise EngineError(f"{topic}: Kafka does not say what is at the sink")
            for message in messages:
                if message.error() is not None:
                    raise EngineError(f"{topic}: {message.error()}")
                told = cast("list[tuple[str, bytes]]", message.headers() or [])
                headers = [{"key": name, "value": value} for name, value in told]
                if (identity := identity_of(headers)) is not None:
                    remembered.is_new(identity)
                part, offset = message.partition(), message.offset()
                if part is not None and offset is not None and offset + 1 >= left.get(part, 0):
                    left.pop(part, None)
    finally:
        reader.close()
    return remembered

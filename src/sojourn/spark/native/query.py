"""The real-time query of a native operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema
from sojourn.host.sizes import MOST_BYTES
from sojourn.spark.native.frame import addressed, own_session, read_stream, worked
from sojourn.spark.native.headers import is_for
from sojourn.spark.native.schema import native_schema, schema_read
from sojourn.spark.real_time import start_real_time

__all__ = ["Native", "slots_of", "start_native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """What a native operator reads, and where its records go.

    *schema* is that of the topic *reads*, where the operator's stream has none because only
    Spark knows it: what `native_schema` says of the operator before. *partitions* are those
    of an aggregation's state; once a batch is committed they stay as they are. No message is
    larger than *most_bytes*. Ids of roots carry *mark*.
    """

    operator: NativeOperator
    servers: str
    reads: str
    writes: str
    dead_letters: str
    checkpoint: Path
    schema: Schema | None = None
    partitions: int = 1
    mark: str = ""
    starting: str = "earliest"
    batch_s: float = 60.0
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    most_bytes: int = MOST_BYTES


def start_native(spark: SparkSession, native: Native) -> StreamingQuery:
    """Return the running query of *native*, or raise a `BadApplication` and start nothing."""
    operator = native.operator
    kafka = {"kafka.bootstrap.servers": native.servers, **native.kafka}
    schema = schema_read(operator, native.schema)
    made = native_schema(spark, operator, schema)
    source = (
        own_session(spark, native.partitions)
        .readStream.format("kafka")
        .options(**kafka)
        .option("subscribe", native.reads)
        .option("startingOffsets", native.starting)
        .option("includeHeaders", "true")
        .load()
        .where(is_for(sql.col("headers"), native.dead_letters, operator.name))
    )
    records = worked(read_stream(source, operator, schema), operator, operator.columns)
    letters = addressed(
        records,
        operator,
        made,
        writes=native.writes,
        dead_letters=native.dead_letters,
        most_bytes=native.most_bytes,
        mark=native.mark,
    )
    return start_real_time(
        letters,
        name=operator.name,
        kafka=kafka,
        checkpoint=native.checkpoint,
        batch_s=native.batch_s,
    )


def slots_of(native: Native, input_partitions: int) -> int:
    """Return how many of Spark's slots the query holds for as long as it runs."""
    state = native.partitions if native.operator.kind == "aggregate" else 0
    return input_partitions + state

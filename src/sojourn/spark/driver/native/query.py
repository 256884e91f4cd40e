"""The rows that queries of native operators write, and the steps of projections in a part.

A part requires one row for each offset, so as its step a projection yields exactly one row for
each input row, in the same order. Rows of other topics pass unchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.spark.driver.native.frame import (
    ERROR,
    SOURCE,
    Address,
    addressed,
    fitting,
    misfits,
    own_session,
    read_stream,
    worked,
)
from sojourn.spark.driver.native.headers import KAFKA, is_for, with_blobs
from sojourn.spark.driver.native.payload import at, has_value, to_payload
from sojourn.spark.driver.native.schema import native_schema, schema_read
from sojourn.spark.driver.query.real_time import read_topics

REFUSED = "error"
"""Column with the reason why a projection could not read a row; otherwise null."""

# names next to the columns of a stream, as in `sojourn.spark.driver.native.frame`
_ROW, _HERE = "sojourn-row", "sojourn-here"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeQuery:
    operator: NativeOperator
    reads: str
    """The topic that it reads."""
    address: Address
    kafka: Mapping[str, str] = field(repr=False)
    """Options of Spark's source."""
    partitions: int = 1
    """State partitions of an aggregation; the first committed batch fixes their number."""
    starting: str = "earliest"
    """Start offsets without a checkpoint, in Spark's format."""


def native_frame(spark: SparkSession, native: NativeQuery) -> DataFrame:
    """Return the rows that the query of *native* writes to Kafka.

    Those of a projection include dead letters of records that do not fit its schema; for an
    aggregation see `misfits_frame`. Raise `BadApplication` if the operator is invalid.
    """
    operator = native.operator
    made = native_schema(spark, operator)
    records = _read(spark, native)
    if operator.kind == "aggregate":
        records = fitting(records)
    results = worked(records, operator, operator.columns)
    return addressed(results, operator, made, native.address)


def misfits_frame(spark: SparkSession, native: NativeQuery) -> DataFrame:
    """Return the dead letters of records that do not fit the schema of an aggregation.

    It cannot write them itself: it emits one row per group, and so would report only one of
    several.
    """
    operator, unfit = native.operator, misfits(_read(spark, native))
    return addressed(unfit, operator, schema_read(operator), native.address)


def _read(spark: SparkSession, native: NativeQuery) -> DataFrame:
    session = own_session(spark, native.partitions)
    operator, letters = native.operator, native.address.dead_letters
    topic = (
        read_topics(session, native.kafka, [native.reads], native.starting)
        .where(is_for(sql.col("headers"), letters, operator.name))
        .where(has_value(sql.col("value")))
    )
    return read_stream(topic, operator, schema_read(operator))


def project_read(
    frame: DataFrame, projections: Mapping[str, NativeOperator], dead_letters: str
) -> DataFrame:
    """Apply *projections*, keyed by the topic that they read, to rows of Kafka's source.

    A projection replaces payload and binary columns; the record keeps its identity and all
    other columns. A record that it cannot read passes unchanged, with the reason in `REFUSED`.
    Retries for other operators and records without a value also pass unchanged.
    """
    rows = frame.select("key", *KAFKA, sql.lit(None).cast("string").alias(REFUSED))
    for topic, operator in projections.items():
        mine = is_for(sql.col("headers"), dead_letters, operator.name)
        here = (sql.col("topic") == topic) & mine & has_value(sql.col("value"))
        rows = _read_rows(rows, operator, here)
    return rows


def _read_rows(rows: DataFrame, operator: NativeOperator, here: Column) -> DataFrame:
    made = native_schema(rows.sparkSession, operator)
    row, error = at(SOURCE)[_ROW], sql.when(at(SOURCE)[_HERE], at(ERROR))
    sound = at(SOURCE)[_HERE] & at(ERROR).isNull()
    changed = {
        "value": sql.when(sound, to_payload(made).cast("binary")).otherwise(row["value"]),
        "headers": sql.when(sound, with_blobs(row["headers"], made)).otherwise(row["headers"]),
        REFUSED: sql.coalesce(row[REFUSED], error),
    }
    return _projected(rows, operator, here).select(
        *(changed.get(name, row[name]).alias(name) for name in rows.columns)
    )


def project_written(
    frame: DataFrame, projections: Mapping[str, NativeOperator], address: Address
) -> DataFrame:
    """Apply *projections*, keyed by the topic that they write, to the results of a part.

    Key, input headers and a given partition stay the same. A record that cannot be projected
    becomes a dead letter, at the topic in *address*.
    """
    for topic, operator in projections.items():
        frame = _written_rows(frame, operator, replace(address, writes=topic))
    return frame


def _written_rows(rows: DataFrame, operator: NativeOperator, address: Address) -> DataFrame:
    made = native_schema(rows.sparkSession, operator)
    # results come from the host and not from a topic: they have no offset and no timestamp
    nowhere = rows.select(
        "*",
        sql.lit(None).cast("bigint").alias("offset"),
        sql.lit(None).cast("timestamp").alias("timestamp"),
    )
    here, row = sql.col("topic") == address.writes, at(_ROW)
    changed = addressed(
        _projected(nowhere, operator, here), operator, made, address, beside=(_ROW, _HERE)
    )
    # the given partition is one of the results' topic; a dead letter goes to any partition
    kept = sql.when(~at(_HERE) | (sql.col("topic") == address.writes), row["partition"])
    columns = {
        name: sql.when(at(_HERE), sql.col(name)).otherwise(row[name])
        for name in ("topic", "key", "value", "headers")
    }
    columns["partition"] = kept
    return changed.select(*(columns[name].alias(name) for name in rows.columns))


def _projected(rows: DataFrame, operator: NativeOperator, here: Column) -> DataFrame:
    """Return the results of a projection for rows *here*; other rows only get an error."""
    # without a value, other rows get an error, with which the projection skips them
    own = rows.select(
        sql.struct("*").alias(_ROW),
        here.alias(_HERE),
        sql.when(here, sql.col("value")).alias("value"),
        *(name for name in ("key", *KAFKA) if name != "value"),
    )
    read = read_stream(own, operator, schema_read(operator), beside=(_ROW, _HERE))
    return worked(read, operator, operator.columns)

"""From a topic to a topic, as columns of Spark: read, worked on, addressed."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema
from sojourn.spark.native.headers import (
    SOURCE,
    blob,
    blob_headers,
    dead_letter_headers,
    lineage_headers,
    written,
)
from sojourn.spark.native.payload import at, from_payload, misfit, read, to_payload

__all__ = ["addressed", "own_session", "read_stream", "worked"]

# beside the columns of a stream, so with names that no stream gives
_SOURCE, _PARSED, _ERROR, _DEAD, _LETTER = (
    "sojourn-source",
    "sojourn-parsed",
    "sojourn-error",
    "sojourn-dead",
    "sojourn-letter",
)


def own_session(spark: SparkSession, partitions: int = 1) -> SparkSession:
    """Return a session whose settings no other query sees."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", partitions)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # as in Python, the last of two equal keys of a map holds
    session.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    return session


def read_stream(topic: DataFrame, operator: NativeOperator, schema: Schema) -> DataFrame:
    """Return the columns of *schema*, beside the record they come from and its error."""
    source, parsed, error = at(_SOURCE), at(_PARSED), at(_ERROR)
    stream = sql.lit(f"{operator.name}: {operator.reads[0].name}: ")
    wrong = sql.concat(stream, misfit(source["value"], parsed, schema))
    columns = {field.name: read(parsed, field) for field in schema.fields}
    for name in schema.binaries:
        columns[name] = sql.coalesce(blob(source, name), columns[name])
    return (
        topic.select(
            sql.struct(*SOURCE).alias(_SOURCE),
            from_payload(sql.col("value"), schema).alias(_PARSED),
        )
        .select(source, parsed, wrong.alias(_ERROR))
        .select(source, error, *(_sound(value).alias(name) for name, value in columns.items()))
    )


def worked(frame: DataFrame, operator: NativeOperator, columns: Iterable[str]) -> DataFrame:
    """Return what the operator makes of *columns*; a record with an error passes untouched."""
    source, error = at(_SOURCE), at(_ERROR)
    made = {name: sql.expr(operator.columns[name]) for name in columns}
    if operator.kind == "project":
        return frame.select(source, error, *(_sound(made[name]).alias(name) for name in made))
    # Those with an error are a group of their own, of which every update is the last of
    # them: so they come out of the same query, and its state keeps only one.
    letter = sql.last(sql.when(error.isNotNull(), sql.struct(source, error))).alias(_LETTER)
    grouped = frame.groupBy(*map(at, operator.groups), error.isNotNull().alias(_DEAD))
    return grouped.agg(*(made[name].alias(name) for name in made), letter).select(
        at(_LETTER)[_SOURCE].alias(_SOURCE),
        at(_LETTER)[_ERROR].alias(_ERROR),
        *map(at, (*operator.groups, *made)),
    )


def addressed(
    frame: DataFrame, operator: NativeOperator, made: Schema, *, writes: str, dead_letters: str
) -> DataFrame:
    """Return what Kafka's sink takes: topic, key, value and headers."""
    source, error = at(_SOURCE), at(_ERROR)
    sound = error.isNull()
    beside = sql.when(sound, blob_headers(made)).otherwise(dead_letter_headers(source, error))
    return frame.select(
        sql.when(sound, writes).otherwise(dead_letters).alias("topic"),
        _key(operator, made).alias("key"),
        sql.when(sound, to_payload(made).cast("binary"))
        .otherwise(source["value"])
        .alias("value"),
        sql.concat(lineage_headers(source, operator.name), written(), beside).alias("headers"),
    )


def _sound(value: Column) -> Column:
    return sql.when(at(_ERROR).isNull(), value)


def _key(operator: NativeOperator, made: Schema) -> Column:
    """Return the group of an update: Kafka keeps those of one key in order."""
    fields = tuple(field for field in made.fields if field.name in operator.groups)
    return _sound(to_payload(Schema(fields)) if fields else sql.lit(None)).cast("binary")

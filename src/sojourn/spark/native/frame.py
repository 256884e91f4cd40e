"""From a topic to a topic, as columns of Spark: read, worked on, addressed."""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema
from sojourn.host.sizes import MOST_BYTES
from sojourn.spark.native.headers import (
    SOURCE,
    blob,
    blob_headers,
    dead_letter_headers,
    lineage_headers,
    written,
)
from sojourn.spark.native.payload import at, from_payload, misfit, read, to_payload

__all__ = ["addressed", "fitting", "misfits", "own_session", "read_stream", "worked"]

# beside the columns of a stream, so with names that no stream gives
_SOURCE, _PARSED, _ERROR, _DEAD, _LETTER, _KEY, _PAYLOAD, _BLOBS = (
    "sojourn-source",
    "sojourn-parsed",
    "sojourn-error",
    "sojourn-dead",
    "sojourn-letter",
    "sojourn-key",
    "sojourn-payload",
    "sojourn-blobs",
)
# Beside payload and binary columns: ids, times, an error, and what Kafka adds.
_MARGIN_BYTES = 8_000
_MOST_CUT_BYTES = 10_000


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
            _source(operator).alias(_SOURCE),
            from_payload(sql.col("value"), schema).alias(_PARSED),
        )
        .select(source, parsed, wrong.alias(_ERROR))
        .select(source, error, *(_sound(value).alias(name) for name, value in columns.items()))
    )


def fitting(frame: DataFrame) -> DataFrame:
    """Return the records that have no error."""
    return frame.where(at(_ERROR).isNull())


def misfits(frame: DataFrame) -> DataFrame:
    """Return the records that have one."""
    return frame.where(at(_ERROR).isNotNull())


def worked(frame: DataFrame, operator: NativeOperator, columns: Iterable[str]) -> DataFrame:
    """Return what the operator makes of *columns*; a record with an error passes untouched."""
    source, error = at(_SOURCE), at(_ERROR)
    made = {name: sql.expr(operator.columns[name]) for name in columns}
    if operator.kind == "project":
        return frame.select(source, error, *(_sound(made[name]).alias(name) for name in made))
    # Records with an error have a query of their own: here they would be a group, of which
    # several are one update. The group stays, because the state of earlier versions has it.
    letter = sql.last(sql.when(error.isNotNull(), sql.struct(source, error))).alias(_LETTER)
    grouped = frame.groupBy(*map(at, operator.groups), error.isNotNull().alias(_DEAD))
    return grouped.agg(*(made[name].alias(name) for name in made), letter).select(
        at(_LETTER)[_SOURCE].alias(_SOURCE),
        at(_LETTER)[_ERROR].alias(_ERROR),
        *map(at, (*operator.groups, *made)),
    )


def addressed(  # noqa: PLR0913 - what Kafka takes, and what it refuses
    frame: DataFrame,
    operator: NativeOperator,
    made: Schema,
    *,
    writes: str,
    dead_letters: str,
    most_bytes: int = MOST_BYTES,
    mark: str = "",
) -> DataFrame:
    """Return what Kafka's sink takes: topic, key, value and headers.

    What it would refuse, because it has more than *most_bytes*, is a dead letter as well. Ids
    of roots carry *mark*.
    """
    source, error, key = at(_SOURCE), at(_ERROR), at(_KEY)
    payload, blobs, room = at(_PAYLOAD), at(_BLOBS), most_bytes - _MARGIN_BYTES
    sized = _bytes(key, payload, blobs)
    large = sql.concat(
        sql.lit(f"{operator.name}: {operator.stream.name}: a record of "),
        sized,
        sql.lit(f" bytes is too large: Kafka takes {room} beside headers; send less, or raise "
                "max.request.size of the application and max.message.bytes of the topic"),
    )  # fmt: skip
    judged = frame.select(
        source,
        error,
        _key(operator, made).alias(_KEY),
        to_payload(made).cast("binary").alias(_PAYLOAD),
        blob_headers(made).alias(_BLOBS),
    ).select(
        source,
        sql.coalesce(error, sql.when(sized > room, large)).alias(_ERROR),
        key,
        payload,
        blobs,
    )
    sound = error.isNull()
    value = sql.when(source.isNull(), payload).otherwise(source["value"])
    size = _bytes(key, value, source["headers"])
    cut = size > room
    letter = dead_letter_headers(
        source,
        error,
        operator=operator.name,
        stream=operator.reads[0].name,
        cut=cut,
        size=size,
        mark=mark,
    )
    child = sql.when(sound, f".{operator.name}.0").otherwise(f".{operator.name}.dead")
    return judged.select(
        sql.when(sound, writes).otherwise(dead_letters).alias("topic"),
        sql.when(sound | (sql.octet_length(key) <= _MOST_CUT_BYTES), key).alias("key"),
        sql.when(sound, payload)
        .when(cut, sql.substring(value, 1, _MOST_CUT_BYTES))
        .otherwise(value)
        .alias("value"),
        sql.concat(
            lineage_headers(source, child, mark),
            written(),
            sql.when(sound, blobs).otherwise(letter),
        ).alias("headers"),
    )


def _source(operator: NativeOperator) -> Column:
    """Return which record it is; a projection passes its key on, too."""
    return sql.struct(*SOURCE, *(["key"] if operator.kind == "project" else []))


def _bytes(key: Column, value: Column, headers: Column) -> Column:
    """Return what key, value and headers take together."""
    beside = sql.aggregate(
        headers,
        sql.lit(0),
        lambda size, header: (
            size
            + sql.octet_length(header["key"])
            + sql.coalesce(sql.octet_length(header["value"]), sql.lit(0))
            + 10
        ),
    )
    parts = (sql.octet_length(key), sql.octet_length(value), beside)
    return reduce(Column.__add__, (sql.coalesce(part, sql.lit(0)) for part in parts))


def _sound(value: Column) -> Column:
    return sql.when(at(_ERROR).isNull(), value)


def _key(operator: NativeOperator, made: Schema) -> Column:
    """Return the group of an update: Kafka keeps those of one key in order.

    A projection passes on that of its record.
    """
    if operator.kind == "project":
        return at(_SOURCE)["key"]
    fields = tuple(field for field in made.fields if field.name in operator.groups)
    return _sound(to_payload(Schema(fields)) if fields else sql.lit(None)).cast("binary")

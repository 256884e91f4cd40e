"""The steps of a native query as Spark columns: read a topic, transform, address results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema
from sojourn.spark.driver.native.headers import (
    KAFKA,
    blob,
    blob_headers,
    dead_letter_headers,
    input_headers,
    lineage_headers,
    position_headers,
    written,
)
from sojourn.spark.driver.native.payload import at, from_payload, misfit, read, to_payload
from sojourn.spark.wire.record import MOST_BYTES

SESSION: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    # as in Python, the last of two equal keys of a map wins
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
"""Session settings that expressions rely on."""

# next to the columns of a stream, so with names that no stream uses
SOURCE, ERROR = "sojourn-source", "sojourn-error"
"""Columns with the source record, and with the reason why it cannot be read."""
_PARSED, _DEAD, _LETTER = "sojourn-parsed", "sojourn-dead", "sojourn-letter"
_KEY, _PAYLOAD, _BLOBS = "sojourn-key", "sojourn-payload", "sojourn-blobs"
# Room in a message for ids, times, an error and Kafka's overhead, next to payload and columns.
_MARGIN_BYTES = 8_000
_MOST_CUT_BYTES = 10_000


def own_session(spark: SparkSession, partitions: int = 1) -> SparkSession:
    """Return a new session with `SESSION` settings, isolated from other queries."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", partitions)
    for name, value in SESSION.items():
        session.conf.set(name, value)
    return session


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    writes: str
    """Topic of results."""
    dead_letters: str
    """Topic of dead letters."""
    most_bytes: int = MOST_BYTES
    """Maximum size of a message."""
    mark: str = ""
    """Mark in the ids of roots (`headers.marked`)."""
    inner: bool = False
    """Whether the operator reads a stream that is not in Kafka.

    Its results pass input headers on, and its dead letters have no position.
    """
    partitions: int = 0
    """Partitions of *writes*, if readers drop duplicates; otherwise 0.

    All results from one input partition then go to the same partition, and have input headers.
    """


def read_stream(
    topic: DataFrame, operator: NativeOperator, schema: Schema, beside: Iterable[str] = ()
) -> DataFrame:
    """Return the columns of *schema*, with the source record and its error.

    The source record also contains the columns *beside*.
    """
    source, parsed, error = at(SOURCE), at(_PARSED), at(ERROR)
    stream = sql.lit(f"{operator.name}: {operator.reads[0].name}: ")
    wrong = sql.concat(stream, misfit(source["value"], parsed, schema))
    columns = {field.name: read(parsed, field) for field in schema.fields}
    for name in schema.binaries:
        columns[name] = sql.coalesce(blob(source, name), columns[name])
    return (
        topic.select(
            _source(operator, beside).alias(SOURCE),
            from_payload(sql.col("value"), schema).alias(_PARSED),
        )
        .select(source, parsed, wrong.alias(ERROR))
        .select(source, error, *(_sound(value).alias(name) for name, value in columns.items()))
    )


def fitting(frame: DataFrame) -> DataFrame:
    return frame.where(at(ERROR).isNull())


def misfits(frame: DataFrame) -> DataFrame:
    return frame.where(at(ERROR).isNotNull())


def worked(frame: DataFrame, operator: NativeOperator, columns: Iterable[str]) -> DataFrame:
    """Return the results of the operator for *columns*, with source and error.

    The results of a projection are null for a record with an error.
    """
    source, error = at(SOURCE), at(ERROR)
    made = {name: sql.expr(operator.columns[name]) for name in columns}
    if operator.kind == "project":
        return frame.select(source, error, *(_sound(made[name]).alias(name) for name in made))
    # Records with an error were filtered out, and have a query of their own: in a group, one
    # update would stand for several of them. The grouping key `_DEAD` and the column `_LETTER`
    # remain because the state of earlier versions contains them.
    letter = sql.last(sql.when(error.isNotNull(), sql.struct(source, error))).alias(_LETTER)
    grouped = frame.groupBy(*map(at, operator.groups), error.isNotNull().alias(_DEAD))
    return grouped.agg(*(made[name].alias(name) for name in made), letter).select(
        at(_LETTER)[SOURCE].alias(SOURCE),
        at(_LETTER)[ERROR].alias(ERROR),
        *map(at, (*operator.groups, *made)),
    )


def addressed(
    frame: DataFrame,
    operator: NativeOperator,
    made: Schema,
    address: Address,
    beside: Iterable[str] = (),
) -> DataFrame:
    """Return rows for Kafka's sink: topic, key, value, headers, and a partition if needed.

    Results that are too large for Kafka become dead letters, like records with an error. The
    columns *beside* of the source record follow.
    """
    source, error, key = at(SOURCE), at(ERROR), at(_KEY)
    payload, blobs, room = at(_PAYLOAD), at(_BLOBS), address.most_bytes - _MARGIN_BYTES
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
        sql.coalesce(error, sql.when(sized > room, large)).alias(ERROR),
        key,
        payload,
        blobs,
    )
    sound = error.isNull()
    # an aggregate has no source record: its dead letter contains the payload that is too large
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
        mark=address.mark,
        inner=address.inner,
    )
    child = sql.when(sound, f".{operator.name}.0").otherwise(f".{operator.name}.dead")
    return judged.select(
        sql.when(sound, address.writes).otherwise(address.dead_letters).alias("topic"),
        sql.when(sound | (sql.octet_length(key) <= _MOST_CUT_BYTES), key).alias("key"),
        sql.when(sound, payload)
        .when(cut, sql.substring(value, 1, _MOST_CUT_BYTES))
        .otherwise(value)
        .alias("value"),
        sql.concat(
            lineage_headers(source, child, address.mark),
            written(),
            sql.when(sound, blobs).otherwise(letter),
            *_inputs(source, operator, address),
        ).alias("headers"),
        *_partition(source, sound, address),
        *(source[name].alias(name) for name in beside),
    )


def _inputs(source: Column, operator: NativeOperator, address: Address) -> list[Column]:
    if address.partitions:
        return [position_headers(source, operator.name, address.mark)]
    return [input_headers(source)] if address.inner else []


def _partition(source: Column, sound: Column, address: Address) -> list[Column]:
    if not address.partitions:
        return []
    number = sql.when(sound, source["partition"] % address.partitions)
    return [number.cast("int").alias("partition")]


def _source(operator: NativeOperator, beside: Iterable[str]) -> Column:
    """Return the struct that identifies the source record; for a projection, with its key."""
    return sql.struct(*KAFKA, *(["key"] if operator.kind == "project" else []), *beside)


def _bytes(key: Column, value: Column, headers: Column) -> Column:
    """Return the size of key, value and headers, with 10 bytes of overhead per header."""
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
    return sql.when(at(ERROR).isNull(), value)


def _key(operator: NativeOperator, made: Schema) -> Column:
    """Return the message key: the group of an update, so that Kafka keeps its updates in order.

    A projection keeps the key of its record.
    """
    if operator.kind == "project":
        return at(SOURCE)["key"]
    fields = tuple(field for field in made.fields if field.name in operator.groups)
    return _sound(to_payload(Schema(fields)) if fields else sql.lit(None)).cast("binary")

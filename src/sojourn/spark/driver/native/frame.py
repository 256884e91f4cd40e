"""From a topic to a topic, as columns of Spark: read, worked on, addressed."""

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
from sojourn.spark.wire.message_size import MOST_BYTES

__all__ = [
    "ERROR",
    "SESSION",
    "SOURCE",
    "Address",
    "addressed",
    "fitting",
    "misfits",
    "own_session",
    "read_stream",
    "worked",
]

SESSION: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    # as in Python, the last of two equal keys of a map holds
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
"""What expressions rely on."""

# beside the columns of a stream, so with names that no stream gives
SOURCE, ERROR = "sojourn-source", "sojourn-error"
"""The columns of a record as it came, and of why it cannot be read."""
_PARSED, _DEAD, _LETTER, _KEY, _PAYLOAD, _BLOBS = (
    "sojourn-parsed",
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
    for name, value in SESSION.items():
        session.conf.set(name, value)
    return session


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The topic that an operator *writes*, and that of its *dead_letters*.

    No message is larger than *most_bytes*. Ids of roots carry *mark*. What comes of an *inner*
    stream tells, as all that leaves a part does, what entered it; that never was in a topic.
    If readers drop duplicates, the query has a name as a *writer*, and the topic so many
    *partitions*: all that comes of one partition is in one of them.
    """

    writes: str
    dead_letters: str
    most_bytes: int = MOST_BYTES
    mark: str = ""
    inner: bool = False
    writer: str = ""
    partitions: int = 0


def read_stream(
    topic: DataFrame, operator: NativeOperator, schema: Schema, beside: Iterable[str] = ()
) -> DataFrame:
    """Return the columns of *schema*, beside the record they come from and its error.

    The record has the columns *beside*, too.
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
    """Return the records that have no error."""
    return frame.where(at(ERROR).isNull())


def misfits(frame: DataFrame) -> DataFrame:
    """Return the records that have one."""
    return frame.where(at(ERROR).isNotNull())


def worked(frame: DataFrame, operator: NativeOperator, columns: Iterable[str]) -> DataFrame:
    """Return what the operator makes of *columns*; a record with an error passes untouched."""
    source, error = at(SOURCE), at(ERROR)
    made = {name: sql.expr(operator.columns[name]) for name in columns}
    if operator.kind == "project":
        return frame.select(source, error, *(_sound(made[name]).alias(name) for name in made))
    # Records with an error have a query of their own: here they would be a group, of which
    # several are one update. The group stays, because the state of earlier versions has it.
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
    """Return what Kafka's sink takes: topic, key, value, headers, and a partition if needed.

    What it would refuse, because it is too large, is a dead letter as well. Columns *beside*,
    which the record has, follow.
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
            *_inputs(source, address),
        ).alias("headers"),
        *_partition(source, sound, address),
        *(source[name].alias(name) for name in beside),
    )


def _inputs(source: Column, address: Address) -> list[Column]:
    if address.writer:
        return [position_headers(source, address.writer, address.mark)]
    return [input_headers(source)] if address.inner else []


def _partition(source: Column, sound: Column, address: Address) -> list[Column]:
    if not address.partitions:
        return []
    number = sql.when(sound, source["partition"] % address.partitions)
    return [number.cast("int").alias("partition")]


def _source(operator: NativeOperator, beside: Iterable[str]) -> Column:
    """Return which record it is; a projection passes its key on, too."""
    return sql.struct(*KAFKA, *(["key"] if operator.kind == "project" else []), *beside)


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
    return sql.when(at(ERROR).isNull(), value)


def _key(operator: NativeOperator, made: Schema) -> Column:
    """Return the group of an update: Kafka keeps those of one key in order.

    A projection passes on that of its record.
    """
    if operator.kind == "project":
        return at(SOURCE)["key"]
    fields = tuple(field for field in made.fields if field.name in operator.groups)
    return _sound(to_payload(Schema(fields)) if fields else sql.lit(None)).cast("binary")

"""What `sojourn.spark.headers` says of a record, said by Spark itself."""

from pyspark.sql import Column
from pyspark.sql import functions as sql

from sojourn.app.schema import Schema
from sojourn.spark.headers import BIRTH, BLOB, ERROR, ID, ROOT, TRACE, WRITTEN
from sojourn.spark.native.payload import at

__all__ = [
    "SOURCE",
    "blob",
    "blob_headers",
    "dead_letter_headers",
    "lineage_headers",
    "written",
]

SOURCE = ("value", "headers", "topic", "partition", "offset", "timestamp")
"""The columns of Kafka that tell which record it is."""


def blob(source: Column, name: str) -> Column:
    """Return the binary column of that name; null where the record has none."""
    return _told(source, BLOB + name)


def lineage_headers(source: Column, operator: str) -> Column:
    """Return who the only child of a record is; nobody's where *source* is null."""
    place = sql.concat_ws("/", source["topic"], source["partition"], source["offset"])
    identity = sql.concat(_text(source, ID, place), sql.lit(f".{operator}.0"))
    birth = _text(source, BIRTH, sql.lit(""))
    born = sql.when(birth.try_cast("double").isNotNull(), birth).otherwise(
        _seconds(source["timestamp"])
    )
    headers = _present(
        _header(ID, identity),
        _header(ROOT, _text(source, ROOT, place)),
        _header(BIRTH, born),
        # of a root itself nothing is decided yet
        _header(TRACE, sql.when(_told(source, ID).isNotNull(), _told(source, TRACE))),
    )
    return sql.when(source.isNotNull(), headers).otherwise(_present())


def written() -> Column:
    """Return when the record is written.

    Not `current_timestamp`, which is one and the same for as long as a batch lasts.
    """
    now = sql.reflect(sql.lit("java.time.Instant"), sql.lit("now")).cast("timestamp")
    return _present(_header(WRITTEN, _seconds(now)))


def blob_headers(schema: Schema) -> Column:
    """Return the binary columns of *schema* that are not null."""
    return _present(*(_header(BLOB + name, at(name)) for name in schema.binaries))


def dead_letter_headers(source: Column, error: Column) -> Column:
    """Return what a record came with, and what is wrong with it."""
    blobs = sql.filter(source["headers"], lambda header: header["key"].startswith(BLOB))
    return sql.concat(sql.coalesce(blobs, _present()), _present(_header(ERROR, error)))


def _told(source: Column, name: str) -> Column:
    named = sql.filter(source["headers"], lambda header: header["key"] == name)
    last = sql.try_element_at(named, sql.lit(-1))
    # a header without a value is there all the same
    return sql.when(last.isNotNull(), sql.coalesce(last["value"], sql.lit(b"")))


def _text(source: Column, name: str, otherwise: Column) -> Column:
    text = sql.try_validate_utf8(_told(source, name).cast("string"))
    return sql.coalesce(sql.nullif(text, sql.lit("")), otherwise)


def _seconds(moment: Column) -> Column:
    micros = sql.unix_micros(moment).cast("decimal(20,0)")
    return (micros / 1_000_000).cast("decimal(20,6)").cast("string")


def _header(name: str, value: Column) -> Column:
    as_bytes = value.cast("string").cast("binary")  # bytes stay what they are
    return sql.when(
        value.isNotNull(), sql.struct(sql.lit(name).alias("key"), as_bytes.alias("value"))
    )


def _present(*headers: Column) -> Column:
    """Return those of *headers* that are not null, as Kafka's sink takes them."""
    found = sql.array_compact(sql.array(*headers)) if headers else sql.array()
    return found.cast("array<struct<key: string, value: binary>>")

"""What `sojourn.spark.wire.headers` says of a record, said by Spark itself."""

from pyspark.sql import Column
from pyspark.sql import functions as sql

from sojourn.app.schema import Schema
from sojourn.spark.driver.native.payload import at
from sojourn.spark.driver.native.signature import signed
from sojourn.spark.wire.dead_letter import CUT, OPERATOR, POSITION, RECORD, STREAM, TRIES
from sojourn.spark.wire.headers import (
    BIRTH,
    BLOB,
    ERROR,
    FOR,
    ID,
    INPUT,
    LATEST_S,
    MOST_ID_BYTES,
    MOST_TRACED,
    OURS,
    ROOT,
    TRACE,
    WRITTEN,
    addressee,
    marked,
)
from sojourn.spark.wire.tracing import DIGEST, HEAD, LONGEST

__all__ = [
    "KAFKA",
    "ORDER_MARGIN",
    "blob",
    "blob_headers",
    "dead_letter_headers",
    "input_headers",
    "is_for",
    "lineage_headers",
    "position_headers",
    "with_blobs",
    "written",
]

KAFKA = ("value", "headers", "topic", "partition", "offset", "timestamp")
"""The columns of Kafka that tell which record it is.

Aggregations keep them in their state: others would not fit what an earlier start has kept.
"""
ORDER_MARGIN = 10_000
"""Records may overtake others by so many offsets, where a producer retries out of order."""


def blob(source: Column, name: str) -> Column:
    """Return the binary column of that name; null where the record has none."""
    return _told(source, BLOB + name)


def is_for(headers: Column, dead_letters: str, operator: str) -> Column:
    """Return whether a record is for this operator: only what is put back in says for which."""
    told = _last(headers, FOR)
    return told.isNull() | (told == sql.lit(addressee(dead_letters, operator).encode()))


def lineage_headers(source: Column, child: Column, mark: str = "") -> Column:
    """Return who the *child* of a record is; nobody's where *source* is null.

    Ids of roots carry *mark*.
    """
    parent = _identity(source, mark)
    root = _text(source, ROOT, parent)
    birth = _text(source, BIRTH, sql.lit("")).try_cast("double")
    moment = sql.when(
        sql.unix_micros(source["timestamp"]).between(0, int(LATEST_S) * 1_000_000),
        source["timestamp"],
    )
    born = sql.when(birth.between(0.0, LATEST_S), _text(source, BIRTH, sql.lit(""))).otherwise(
        _seconds(sql.coalesce(moment, _now()))
    )
    trace = _told(source, TRACE).cast("string").try_cast("int")
    headers = _present(
        _header(ID, _child(sql.concat(parent, child), root)),
        _header(ROOT, root),
        _header(BIRTH, born),
        # of a root itself nothing is decided yet
        _header(
            TRACE,
            sql.when(
                _told(source, ID).isNotNull(),
                sql.when(trace.between(0, MOST_TRACED), trace).otherwise(0),
            ),
        ),
    )
    return sql.when(source.isNotNull(), headers).otherwise(_present())


def written() -> Column:
    """Return when the record is written.

    Not `current_timestamp`, which is one and the same for as long as a batch lasts.
    """
    return _present(_header(WRITTEN, _seconds(_now())))


def blob_headers(schema: Schema) -> Column:
    """Return the binary columns of *schema* that are not null."""
    return _present(*(_header(BLOB + name, at(name)) for name in schema.binaries))


def with_blobs(headers: Column, schema: Schema) -> Column:
    """Return *headers* with the binary columns of *schema* in place of those they have."""
    others = sql.filter(headers, lambda header: ~header["key"].startswith(BLOB))
    return sql.concat(sql.coalesce(others, _present()), blob_headers(schema))


def input_headers(source: Column) -> Column:
    """Return the headers that say from which record that entered a writer a record comes."""
    told = sql.filter(source["headers"], lambda header: header["key"] == INPUT)
    return sql.coalesce(told, _present())


def position_headers(source: Column, writer: str, mark: str) -> Column:
    """Return the input headers of what the query *writer* makes of a record, its own last.

    A projection writes one record at most for each that it reads, in the order of offsets. So
    all that comes of offsets far below this one is written. Of a record that is retried, the
    first one may have been written long ago: its input headers are not passed on.
    """
    floor = sql.greatest(source["offset"] - ORDER_MARGIN, sql.lit(0))
    place = _place(source, _marked(source, mark))
    own = _header(INPUT, signed(sql.concat_ws(" ", sql.lit(writer), place, floor)))
    retried = _last(source["headers"], FOR).isNotNull()
    return sql.concat(
        sql.when(retried, _present()).otherwise(input_headers(source)), _present(own)
    )


def dead_letter_headers(  # noqa: PLR0913 - all that a letter tells
    source: Column,
    error: Column,
    *,
    operator: str,
    stream: str,
    cut: Column,
    size: Column,
    mark: str = "",
    inner: bool = False,
) -> Column:
    """Return what a record came with, and what is wrong with it.

    Of one that is *cut*, the bytes of the whole are told. An *inner* one has no position.
    """
    beside = sql.filter(
        source["headers"],
        lambda header: header["key"].startswith(BLOB) | ~header["key"].startswith(OURS),
    )
    told = _present(
        _header(RECORD, _identity(source, mark)),
        _header(OPERATOR, sql.lit(operator)),
        _header(STREAM, sql.lit(stream)),
        *([] if inner else [_header(POSITION, _place(source, source["topic"]))]),
        _header(TRIES, sql.lit("1")),
        _header(ERROR, error),
        _header(CUT, sql.when(cut, size)),
    )
    kept = sql.when(~cut, beside)
    return sql.concat(sql.coalesce(kept, _present()), told)


def _now() -> Column:
    return sql.reflect(sql.lit("java.time.Instant"), sql.lit("now")).cast("timestamp")


def _place(source: Column, topic: Column) -> Column:
    return sql.concat_ws("/", topic, source["partition"], source["offset"])


def _marked(source: Column, mark: str) -> Column:
    return sql.concat(source["topic"], sql.lit(marked("", mark)))


def _identity(source: Column, mark: str) -> Column:
    return _text(source, ID, _place(source, _marked(source, mark)))


def _child(identity: Column, root: Column) -> Column:
    """Return an id, as short as `sojourn.spark.wire.tracing.child_identity` makes it."""
    head = sql.substring(identity, sql.lit(1), sql.length(root) + HEAD)
    digest = sql.substring(sql.sha2(identity, 256), 1, DIGEST)
    return sql.when(sql.length(identity) <= sql.length(root) + LONGEST, identity).otherwise(
        sql.concat(head, sql.lit("~"), digest)
    )


def _told(source: Column, name: str) -> Column:
    return _last(source["headers"], name)


def _last(headers: Column, name: str) -> Column:
    named = sql.filter(headers, lambda header: header["key"] == name)
    last = sql.try_element_at(named, sql.lit(-1))
    # a header without a value is there all the same
    return sql.when(last.isNotNull(), sql.coalesce(last["value"], sql.lit(b"")))


def _text(source: Column, name: str, otherwise: Column) -> Column:
    told = _told(source, name)
    text = sql.try_validate_utf8(told.cast("string"))
    short = sql.when(sql.octet_length(told) > MOST_ID_BYTES, sql.sha2(told, 256))
    return sql.when(
        sql.nullif(text, sql.lit("")).isNotNull(), sql.coalesce(short, text)
    ).otherwise(otherwise)


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

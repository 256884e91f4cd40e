"""The headers of `sojourn.spark.wire.headers`, read, written and signed by Spark SQL."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.schema import Schema
from sojourn.spark.driver.native.payload import at
from sojourn.spark.wire.dead_letter import CUT, OPERATOR, POSITION, RECORD, STREAM, TRIES
from sojourn.spark.wire.headers import (
    BIRTH,
    BLOB,
    CHILD_DIGEST,
    CHILD_HEAD,
    ERROR,
    FOR,
    ID,
    INPUT,
    LATEST_S,
    LONGEST_CHILD,
    MOST_ID_BYTES,
    MOST_TRACED,
    OURS,
    ROOT,
    TRACE,
    WRITTEN,
    addressee,
    marked,
)
from sojourn.spark.wire.signed_inputs import SIGNATURE

KAFKA = ("value", "headers", "topic", "partition", "offset", "timestamp")
"""Columns of Kafka's source that identify a record.

They are part of the state schema of aggregations, so a change would break existing states.
"""
ORDER_MARGIN = 10_000
"""Maximum reordering, in offsets, when a producer retries out of order."""

# Spark SQL has SHA-256 but no HMAC, so HMAC is composed here as in RFC 2104, from two padded
# keys that Python prepares. As literals they would show in query plans. Expressions therefore
# look them up in Java: as system properties in the driver's process, which are set after the
# launch and so are on no command line, and as environment variables of executors, whose names
# contain SECRET so that Spark redacts them.
_BLOCK = 64
_INNER, _OUTER = "SOJOURN_SIGNING_SECRET_INNER", "SOJOURN_SIGNING_SECRET_OUTER"
_PADS = {_INNER: 0x36, _OUTER: 0x5C}


def executor_environment(key: bytes) -> dict[str, str]:
    """Return the environment variables of executors: both padded keys, in hexadecimal.

    >>> {name: len(value) for name, value in executor_environment(b"k").items()}
    {'SOJOURN_SIGNING_SECRET_INNER': 128, 'SOJOURN_SIGNING_SECRET_OUTER': 128}
    """
    block = key.ljust(_BLOCK, b"\0")
    return {name: bytes(byte ^ pad for byte in block).hex() for name, pad in _PADS.items()}


def install_key(session: SparkSession, environment: Mapping[str, str]) -> None:
    """Install the padded keys for tasks that run in the session's own Java process."""
    java: Any = session.sparkContext._jvm  # noqa: SLF001
    for name, value in environment.items():
        java.java.lang.System.setProperty(name, value)


def blob(source: Column, name: str) -> Column:
    """Return the binary column *name*; null if the record has none."""
    return _told(source, BLOB + name)


def is_for(headers: Column, dead_letters: str, operator: str) -> Column:
    """Return whether a record is for *operator*; only retries are addressed to a single one."""
    told = _last(headers, FOR)
    return told.isNull() | (told == sql.lit(addressee(dead_letters, operator).encode()))


def lineage_headers(source: Column, child: Column, mark: str = "") -> Column:
    """Return id, root, birth and trace of a child; no headers if *source* is null.

    *child* is the suffix that its id adds to that of its parent. Ids of roots carry *mark*.
    """
    parent = _identity(source, mark)
    root = _text(source, ROOT, parent)
    birth = _text(source, BIRTH, sql.lit("")).try_cast("double")
    # birth: from the header, else Kafka's timestamp, else now; producers may write nonsense
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
        # a record without an id is a root, for which nothing is decided yet
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
    """Return the header with the time of the write.

    `current_timestamp` will not do: it is constant for the whole batch.
    """
    return _present(_header(WRITTEN, _seconds(_now())))


def blob_headers(schema: Schema) -> Column:
    """Return the headers of the binary columns of *schema* that are not null."""
    return _present(*(_header(BLOB + name, at(name)) for name in schema.binaries))


def with_blobs(headers: Column, schema: Schema) -> Column:
    """Return *headers* with their binary columns replaced by those of *schema*."""
    others = sql.filter(headers, lambda header: ~header["key"].startswith(BLOB))
    return sql.concat(sql.coalesce(others, _present()), blob_headers(schema))


def input_headers(source: Column) -> Column:
    """Return the input headers of a record: the inputs of writers that it derives from."""
    told = sql.filter(source["headers"], lambda header: header["key"] == INPUT)
    return sql.coalesce(told, _present())


def position_headers(source: Column, writer: str, mark: str) -> Column:
    """Return the input headers of a result of the query *writer*, its own last.

    A projection writes at most one record for each that it reads, in the order of offsets. So
    the results of offsets more than `ORDER_MARGIN` below this one are already written. A retry
    does not pass on the input headers of its record, whose result may have been written long
    ago.
    """
    floor = sql.greatest(source["offset"] - ORDER_MARGIN, sql.lit(0))
    place = _place(source, _marked(source, mark))
    own = _header(INPUT, _signed(sql.concat_ws(" ", sql.lit(writer), place, floor)))
    retried = _last(source["headers"], FOR).isNotNull()
    return sql.concat(
        sql.when(retried, _present()).otherwise(input_headers(source)), _present(own)
    )


def dead_letter_headers(  # noqa: PLR0913 - most by name
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
    """Return the headers of a dead letter: headers of the record, then those of its failure.

    A letter that is *cut* omits the headers of the record, and contains the *size* of the
    whole in bytes. An *inner* one has no position.
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
    """Return an id, shortened as by `sojourn.spark.wire.headers.child_identity`."""
    head = sql.substring(identity, sql.lit(1), sql.length(root) + CHILD_HEAD)
    digest = sql.substring(sql.sha2(identity, 256), 1, CHILD_DIGEST)
    return sql.when(
        sql.length(identity) <= sql.length(root) + LONGEST_CHILD, identity
    ).otherwise(sql.concat(head, sql.lit("~"), digest))


def _told(source: Column, name: str) -> Column:
    return _last(source["headers"], name)


def _last(headers: Column, name: str) -> Column:
    named = sql.filter(headers, lambda header: header["key"] == name)
    last = sql.try_element_at(named, sql.lit(-1))
    # a header with a null value is present: it counts as empty
    return sql.when(last.isNotNull(), sql.coalesce(last["value"], sql.lit(b"")))


def _text(source: Column, name: str, otherwise: Column) -> Column:
    told = _told(source, name)
    text = sql.try_validate_utf8(told.cast("string"))
    short = sql.when(sql.octet_length(told) > MOST_ID_BYTES, sql.sha2(told, 256))
    return sql.when(
        sql.nullif(text, sql.lit("")).isNotNull(), sql.coalesce(short, text)
    ).otherwise(otherwise)


def _signed(text: Column) -> Column:
    """Return *text* with its signature appended; null if Java has no key."""
    inner = _digest(_padded_key(_INNER), text.cast("binary"))
    outer = _digest(_padded_key(_OUTER), sql.unhex(inner))
    return sql.concat(text, sql.lit(" "), sql.substring(outer, 1, SIGNATURE))


def _digest(key: Column, content: Column) -> Column:
    return sql.sha2(sql.concat(key, content), 256)


def _padded_key(name: str) -> Column:
    known = (
        sql.reflect(sql.lit("java.lang.System"), sql.lit(method), sql.lit(name))
        for method in ("getProperty", "getenv")
    )
    return sql.unhex(sql.coalesce(*known))


def _seconds(moment: Column) -> Column:
    micros = sql.unix_micros(moment).cast("decimal(20,0)")
    return (micros / 1_000_000).cast("decimal(20,6)").cast("string")


def _header(name: str, value: Column) -> Column:
    as_bytes = value.cast("string").cast("binary")  # binary values pass unchanged
    return sql.when(
        value.isNotNull(), sql.struct(sql.lit(name).alias("key"), as_bytes.alias("value"))
    )


def _present(*headers: Column) -> Column:
    """Return the *headers* that are not null, in the type that Kafka's sink requires."""
    found = sql.array_compact(sql.array(*headers)) if headers else sql.array()
    return found.cast("array<struct<key: string, value: binary>>")

"""Conversions between Spark's JSON and the JSON of `sojourn.app.codec.json`.

In Spark's JSON the keys of maps are strings only, and decimals are numbers, which other clients
round.
"""

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as sql

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct

__all__ = ["INSTANT", "LOCAL", "Change", "read_key", "reading", "writing"]

INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
LOCAL = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
"""Formats of timestamps to the microsecond, with and without a time zone."""

_TEXT = Atom("string")

Change: TypeAlias = Callable[[Column], Column]


def reading(kind: DataType) -> Change | None:
    """Return the conversion of a parsed value to *kind*; None if it needs none."""
    return _inside(kind, reading, read_key)


def writing(kind: DataType) -> Change | None:
    """Return the conversion of a value of *kind* for `to_json`; None if it needs none."""
    if isinstance(kind, datatype.Decimal):
        return lambda value: value.cast("string")
    return _inside(kind, writing, _written_key)


def read_key(kind: DataType, text: Column) -> Column:
    """Return the key of a map that *text* encodes; null if it is invalid."""
    if kind == Atom("binary"):
        return sql.try_to_binary(text, sql.lit("base64"))
    return text.try_cast(str(kind))


def _inside(
    kind: DataType,
    change: Callable[[DataType], Change | None],
    key: Callable[[DataType, Column], Column],
) -> Change | None:
    """Return the conversion of the elements, entries or fields of *kind*; None without one."""
    match kind:
        case Array(element) if (inner := change(element)) is not None:
            return lambda value: sql.transform(value, inner)
        case Map():
            return _entries(kind, change(kind.value), key)
        case Struct(fields):
            return _parts(fields, change)
        case _:
            return None


def _entries(
    kind: Map, inner: Change | None, key: Callable[[DataType, Column], Column]
) -> Change | None:
    steps: list[Change] = []
    if inner is not None:
        steps.append(lambda value: sql.transform_values(value, lambda _, part: inner(part)))
    if kind.key != _TEXT:
        steps.append(
            lambda value: sql.transform_keys(value, lambda name, _: key(kind.key, name))
        )
    if not steps:
        return None
    return lambda value: reduce(lambda changed, step: step(changed), steps, value)


def _parts(
    fields: tuple[Field, ...], change: Callable[[DataType], Change | None]
) -> Change | None:
    changes = [(field.name, change(field.type)) for field in fields]
    if all(inner is None for _, inner in changes):
        return None

    def changed(value: Column) -> Column:
        parts = [
            (inner(value[name]) if inner else value[name]).alias(name)
            for name, inner in changes
        ]
        return sql.when(value.isNotNull(), sql.struct(*parts))

    return changed


def _written_key(kind: DataType, value: Column) -> Column:
    match kind:
        case Atom("binary"):
            return sql.base64(value)
        case Atom("timestamp"):
            return sql.date_format(value, INSTANT)
        case Atom("timestamp_ntz"):
            return sql.date_format(value, LOCAL)
        case _:
            return value.cast("string")

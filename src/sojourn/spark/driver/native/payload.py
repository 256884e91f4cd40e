"""JSON payloads, read and written by Spark as `sojourn.app.codec.json` does in Python.

In Spark's JSON the keys of maps are strings only, and decimals are numbers, which other clients
round.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as sql

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.schema import Schema

# Formats of timestamps to the microsecond, with and without a time zone.
_INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_LOCAL = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_READING = {"columnNameOfCorruptRecord": "corrupt", "allowSingleQuotes": "false"}
_WRITING = {
    "timestampFormat": _INSTANT,
    "timestampNTZFormat": _LOCAL,
    "ignoreNullFields": "false",
}
_SURROGATE = r"\\u[dD][89a-fA-F]"
_TEXT = Atom("string")

_Change: TypeAlias = Callable[[Column], Column]


def at(name: str) -> Column:
    """Return the column *name*, quoted: it may contain any characters."""
    return sql.col(f"`{name.replace('`', '``')}`")


def has_value(body: Column) -> Column:
    """Return whether a message has a value; tombstones of compacted topics have none."""
    return sql.coalesce(sql.octet_length(body), sql.lit(0)) > 0


def from_payload(body: Column, schema: Schema) -> Column:
    """Return the parsed *body*, as input for `misfit` and `read`."""
    record = Struct((Field("record", _json(Struct(schema.fields))), Field("corrupt", _TEXT)))
    # wrapped in another object, because `from_json` ignores any text after a complete one
    inside = sql.concat(sql.lit('{"record":'), body.cast("string"), sql.lit("}"))
    return sql.from_json(inside, str(Schema(record.fields)), _READING)


def misfit(body: Column, parsed: Column, schema: Schema) -> Column:
    """Return why *body*, parsed as *parsed*, does not fit *schema*; null if it does."""
    text, record = body.cast("string"), parsed["record"]
    # `from_json` has replaced unpaired surrogates by question marks, so the text decides; the
    # regular expression spares most records a second parse
    half = text.rlike(_SURROGATE) & sql.try_parse_json(text).isNull()
    rule = _breaks(Struct(schema.fields))
    broken = sql.lit(False) if rule is None else rule(record)
    return (
        sql.when(text.isNull(), "is empty, not JSON")
        .when(~sql.is_valid_utf8(text), "is not JSON: it is not UTF-8")
        .when(
            record.isNull() | parsed["corrupt"].isNotNull(),
            f"is not JSON that fits {schema}",
        )
        .when(half, "has half a surrogate pair, which UTF-8 cannot encode")
        .when(broken, f"has a null or a key that does not fit {schema}")
    )


def read(parsed: Column, field: Field) -> Column:
    """Return the value of *field* in a parsed body."""
    change = _reading(field.type)
    value = parsed["record"][field.name]
    return change(value) if change else value


def to_payload(schema: Schema) -> Column:
    """Return the columns of *schema* as JSON, without binary columns, which are headers."""
    parts = [
        (change(at(field.name)) if change else at(field.name)).alias(field.name)
        for field in schema.fields
        if field.type != Atom("binary")
        for change in [_writing(field.type)]
    ]
    return sql.to_json(sql.struct(*parts), _WRITING) if parts else sql.lit("{}")


def _json(kind: DataType) -> DataType:
    """Return a type as it is in JSON: map keys are strings, any value may be null."""
    match kind:
        case Array(element):
            return Array(_json(element))
        case Map(_, value):
            return Map(_TEXT, _json(value))
        case Struct(fields):
            return Struct(
                tuple(replace(each, type=_json(each.type), nullable=True) for each in fields)
            )
        case _:
            return kind


def _breaks(kind: DataType) -> _Change | None:
    """Return a predicate for violations that `from_json` does not detect; None without rules.

    These are nulls in fields that are not nullable, and invalid keys of maps.
    """
    match kind:
        case Array(element) if (inner := _breaks(element)) is not None:
            return lambda value: sql.exists(value, inner)
        case Map(key, element):
            return _map_breaks(key, _breaks(element))
        case Struct(fields):
            return _any([_field_breaks(field) for field in fields])
        case _:
            return None


def _map_breaks(key: DataType, inner: _Change | None) -> _Change | None:
    rules: list[_Change | None] = []
    if key != _TEXT:
        rules.append(
            lambda value: sql.exists(
                sql.map_keys(value), lambda name: _read_key(key, name).isNull()
            )
        )
    if inner is not None:
        rules.append(lambda value: sql.exists(sql.map_values(value), inner))
    return _any(rules)


def _field_breaks(field: Field) -> _Change | None:
    inner = _breaks(field.type)
    rules: list[_Change | None] = []
    if not field.nullable:
        rules.append(lambda value: value[field.name].isNull())
    if inner is not None:
        rules.append(lambda value: inner(value[field.name]))
    return _any(rules)


def _any(rules: list[_Change | None]) -> _Change | None:
    given = [rule for rule in rules if rule is not None]
    if not given:
        return None

    def broken(value: Column) -> Column:
        # a null part violates nothing by itself; its field decides whether it may be null
        found = (sql.coalesce(rule(value), sql.lit(False)) for rule in given)
        return value.isNotNull() & reduce(Column.__or__, found)

    return broken


def _reading(kind: DataType) -> _Change | None:
    """Return the conversion of a parsed value to *kind*; None if it needs none."""
    return _inside(kind, _reading, _read_key)


def _writing(kind: DataType) -> _Change | None:
    """Return the conversion of a value of *kind* for `to_json`; None if it needs none."""
    if isinstance(kind, datatype.Decimal):
        return lambda value: value.cast("string")
    return _inside(kind, _writing, _written_key)


def _read_key(kind: DataType, text: Column) -> Column:
    """Return the key of a map that *text* encodes; null if it is invalid."""
    if kind == Atom("binary"):
        return sql.try_to_binary(text, sql.lit("base64"))
    return text.try_cast(str(kind))


def _inside(
    kind: DataType,
    change: Callable[[DataType], _Change | None],
    key: Callable[[DataType, Column], Column],
) -> _Change | None:
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
    kind: Map, inner: _Change | None, key: Callable[[DataType, Column], Column]
) -> _Change | None:
    steps: list[_Change] = []
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
    fields: tuple[Field, ...], change: Callable[[DataType], _Change | None]
) -> _Change | None:
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
            return sql.date_format(value, _INSTANT)
        case Atom("timestamp_ntz"):
            return sql.date_format(value, _LOCAL)
        case _:
            return value.cast("string")

"""Reads values from JSON.

Accepts the output of Spark's `to_json` and of other clients too: numbers for decimals, base64
for binary columns, missing columns for null.
"""

import datetime as dt
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import inf, nan
from typing import Any, Literal, NoReturn, TypeAlias

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.type_check import check_of, misfit, plain_types, within
from sojourn.text import shown

Reader: TypeAlias = Callable[[Any], Any]

# NaN and infinities, in all spellings that Spark writes or reads
_ODD = {
    "NaN": nan,
    "Infinity": inf, "-Infinity": -inf, "+Infinity": inf,
    "INF": inf, "-INF": -inf, "+INF": inf,
}  # fmt: skip
_AS_IS = {"string": (str,), "boolean": (bool,), "double": (float,)}
_WORDS = {"true": True, "false": False}


def as_is(field: Field) -> frozenset[type]:
    """Return the types of JSON values that a column takes without conversion."""
    return plain_types(field, _AS_IS)


def reader(kind: DataType) -> Reader:
    """Return a converter from JSON, not null, to *kind*, which raises `BadRecord` on misfit."""
    match kind:
        case Atom(name):
            return _READERS.get(name) or _converted(kind)
        case datatype.Decimal():
            return _read_decimal(kind)
        case Array(element):
            return _read_array(Field("element", element))
        case Map(key, value):
            return _read_map(key, Field("value", value))
        case Struct(fields):
            return _read_struct(fields)


def read_field(field: Field) -> Reader:
    """Return a converter from JSON to the value of a column, for JSON that is not `as_is`."""
    read, place = reader(field.type), f".{field.name}"

    def value(given: object) -> object:
        if given is None:
            misfit("is missing, but the column is not null", place)
        return within(place, read, given)

    return value


def _is_no(given: object, kind: object) -> NoReturn:
    misfit(f"{shown(given)} does not fit {kind}")


def _converted(kind: DataType, convert: Reader = lambda given: given) -> Reader:
    """Return a converter that checks its result against *kind*."""
    check = check_of(kind)

    def read(given: object) -> object:
        value = convert(given)
        check(value)
        return value

    return read


def _float(name: Literal["float", "double"]) -> Reader:
    def convert(given: object) -> float:
        if isinstance(given, str) and given in _ODD:
            return _ODD[given]
        if isinstance(given, bool) or not isinstance(given, int | float | Decimal):
            _is_no(given, name)
        try:
            return float(given)
        except OverflowError:
            misfit(f"{shown(given)} is out of range for {name}")

    return _converted(Atom(name), convert)


def _read_date(given: object) -> dt.date:
    try:
        return dt.date.fromisoformat(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        _is_no(given, "date; write it like 2024-12-31")


def _time(name: Literal["timestamp", "timestamp_ntz"], example: str) -> Reader:
    def convert(given: object) -> dt.datetime:
        try:
            return dt.datetime.fromisoformat(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            _is_no(given, f"{name}; write it like {example}")

    return _converted(Atom(name), convert)


def _read_instant(given: object) -> dt.datetime:
    value: dt.datetime = _TIMESTAMP(given)
    try:
        return value.astimezone(dt.UTC)
    except OverflowError:
        misfit(f"{shown(given)} is outside the years 1 to 9999 in UTC")


def _read_binary(given: object) -> bytes:
    try:
        return b64decode(given, validate=True)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        _is_no(given, "binary; write base64")


_TIMESTAMP = _time("timestamp", "2024-12-31T23:59:59.123456+00:00")


_READERS: dict[str, Reader] = {
    "float": _float("float"),
    "double": _float("double"),
    "date": _read_date,
    "timestamp": _read_instant,
    "timestamp_ntz": _time("timestamp_ntz", "2024-12-31T23:59:59.123456"),
    "binary": _read_binary,
}


def _read_decimal(kind: datatype.Decimal) -> Reader:
    def convert(given: object) -> Decimal:
        if isinstance(given, bool) or not isinstance(given, str | int | Decimal):
            _is_no(given, kind)
        try:
            return Decimal(given)
        except InvalidOperation:
            _is_no(given, kind)

    return _converted(kind, convert)


def _read_array(element: Field) -> Reader:
    plain, read = as_is(element), reader(element.type)

    def values(given: object) -> list[Any]:
        if not isinstance(given, list):
            _is_no(given, "array")
        return [
            value if type(value) in plain else within(f"[{i}]", read, value)
            for i, value in enumerate(given)
        ]

    return values


def _read_map(key: DataType, element: Field) -> Reader:
    plain, read, read_key = as_is(element), reader(element.type), _read_key(key)

    def values(given: object) -> dict[Any, Any]:
        if not isinstance(given, dict):
            _is_no(given, "map")
        return {
            within(".key", read_key, name): (
                value if type(value) in plain else within(f"[{shown(name)}]", read, value)
            )
            for name, value in given.items()
        }

    return values


def _read_key(kind: DataType) -> Reader:
    match kind:
        case Atom("boolean"):
            return lambda text: _WORDS[text] if text in _WORDS else _is_no(text, kind)
        case Atom("float" | "double" | "tinyint" | "smallint" | "int" | "bigint"):
            return _read_number_key(reader(kind), whole=kind.name not in ("float", "double"))
        case _:
            return reader(kind)


def _read_number_key(read: Reader, *, whole: bool) -> Reader:
    def value(text: str) -> Any:  # noqa: ANN401
        if text in _ODD:
            return read(text)
        try:
            return read(int(text) if whole else float(text))
        except ValueError:
            _is_no(text, "number")

    return value


def _read_struct(fields: tuple[Field, ...]) -> Reader:
    parts = tuple((field.name, as_is(field), read_field(field)) for field in fields)

    def values(given: object) -> tuple[Any, ...]:
        if not isinstance(given, dict):
            _is_no(given, "struct")
        return tuple(
            value if type(value := given.get(name)) in plain else read(value)
            for name, plain, read in parts
        )

    return values

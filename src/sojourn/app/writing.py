"""Converts values to JSON, in records and in keys.

JSON has no times, bytes, decimals, NaN or infinities: they are written as text that Spark's
`from_json` reads. Decimals are text so that no client rounds them.
"""

import datetime as dt
from base64 import b64encode
from collections.abc import Callable
from math import inf, isfinite
from types import NoneType
from typing import Any, TypeAlias

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.reading import reader
from sojourn.app.type_check import exact, misfit, within

Writer: TypeAlias = Callable[[Any], Any]

_AS_IS = {
    "string": str, "boolean": bool,
    "tinyint": int, "smallint": int, "int": int, "bigint": int,
}  # fmt: skip


def writer(kind: DataType, *, odd: bool) -> Writer | None:
    """Return a converter from *kind* to JSON; None if values need no conversion.

    With *odd*, numbers may be NaN or infinite; this is rare, and each number costs a check.
    """
    match kind:
        case Atom(name):
            return _odd_number if odd and name in ("float", "double") else _WRITERS.get(name)
        case datatype.Decimal():
            unit, context = exact(kind)
            return lambda value: format(value.quantize(unit, context=context), "f")
        case Array(element):
            return _written_array(writer(element, odd=odd))
        case Map(key, value):
            return _written_map(key, writer(value, odd=odd))
        case Struct(fields):
            return _written_struct(fields, odd=odd)


def _odd_number(value: float) -> float | str:
    if isfinite(value):
        return value
    return "Infinity" if value == inf else "-Infinity" if value == -inf else "NaN"


def _instant(value: dt.datetime) -> str:
    try:
        return value.astimezone(dt.UTC).isoformat()
    except OverflowError:
        misfit(f"{value} is outside the years 1 to 9999 in UTC")


_WRITERS: dict[str, Writer] = {
    "date": dt.date.isoformat,
    "timestamp": _instant,
    "timestamp_ntz": lambda value: value.replace(tzinfo=None).isoformat(),
    "binary": lambda value: b64encode(value).decode("ascii"),
}


def _written_array(write: Writer | None) -> Writer | None:
    if write is None:
        return None
    return lambda values: [None if value is None else write(value) for value in values]


def _written_map(key: DataType, write: Writer | None) -> Writer | None:
    if key == Atom("string") and write is None:
        return None
    name = _key_text(key)

    def written(values: dict[Any, Any]) -> dict[str, Any]:
        return {
            name(key): value if value is None or write is None else write(value)
            for key, value in values.items()
        }

    return written


def _key_text(kind: DataType) -> Writer:
    match kind:
        case Atom("boolean"):
            return lambda value: "true" if value else "false"
        case Atom("float" | "double"):
            return lambda value: str(_odd_number(float(value)))
        case Atom("tinyint" | "smallint" | "int" | "bigint"):
            return lambda value: str(int(value))
        case _:
            return writer(kind, odd=False) or str


def _written_struct(fields: tuple[Field, ...], *, odd: bool) -> Writer:
    parts = tuple((field.name, writer(field.type, odd=odd)) for field in fields)

    def written(values: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: value if value is None or write is None else write(value)
            for (name, write), value in zip(parts, values, strict=True)
        }

    return written


def key_of_value(field: Field) -> Writer:
    """Return a converter from values of a column, or None, to parts of a key.

    Keys derive from values, not from JSON text: clients may write one number as 1 or 1.0.

    >>> [key_of_value(Field("rate", Atom("double")))(value) for value in (2.5, -0.0, None)]
    [2.5, 0.0, None]
    """
    write = writer(field.type, odd=True)
    if write is None:
        return lambda value: value
    if field.type in (Atom("double"), Atom("float")):
        # a negative zero equals zero
        return lambda value: None if value is None else write(value + 0.0)
    return lambda value: None if value is None else write(value)


def key_of_json(field: Field) -> Writer:
    """Return a converter from JSON to parts of a key, which raises `BadRecord` on misfit.

    >>> [key_of_json(Field("rate", Atom("double")))(value) for value in (1, 1.0, "INF", None)]
    [1.0, 1.0, 'Infinity', None]
    """
    read, write, place = reader(field.type), key_of_value(field), f".{field.name}"
    plain = _AS_IS.get(field.type.name) if isinstance(field.type, Atom) else None
    as_is = {plain, NoneType}

    def part(given: object) -> object:
        return given if type(given) in as_is else write(within(place, read, given))

    return part

"""Checks that Python values fit the types of their columns.

A check raises a `BadRecord` whose place is the path inside the value, such as `.parts[3].a`;
callers put the stream and the operator before it.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from math import isinf
from types import NoneType
from typing import Any, NoReturn, TypeAlias

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.schema import Schema
from sojourn.errors import BadRecord
from sojourn.text import shown

Check: TypeAlias = Callable[[Any], None]

FLOAT_MAX = (2 - 2**-23) * 2.0**127
"""The largest 32-bit float."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "date": (dt.date,),
    "timestamp": (dt.datetime,),
    "timestamp_ntz": (dt.datetime,),
    "binary": (bytes, bytearray),
}
# Fast path: values of exactly these types fit without a further check.
_PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "double": (float,),
    "date": (dt.date,),
    "binary": (bytes, bytearray),
}


def check_record(schema: Schema) -> Check:
    """Return a check that its argument is a record of *schema*, a tuple."""
    columns = tuple((plain_types(field), _field(field)) for field in schema.fields)
    width = len(columns)

    def check(record: Any) -> None:  # noqa: ANN401 - its type is checked here
        if not isinstance(record, tuple):
            misfit(f"{shown(record)} is not a record; make it a tuple: (value,)")
        if len(record) != width:
            misfit(f"{shown(record)} has {len(record)} values for {width} columns: {schema}")
        for value, (plain, fits) in zip(record, columns, strict=True):
            if type(value) not in plain:
                fits(value)

    return check


def check_of(kind: DataType) -> Check:
    """Return a check that its argument is a value of *kind*, not None."""
    match kind:
        case Atom(name):
            return _atom(name)
        case datatype.Decimal():
            return lambda value: _decimal(kind, value)
        case Array(element):
            return _array(Field("element", element))
        case Map(key, value):
            return _map(check_of(key), Field("value", value))
        case Struct():
            return _struct(kind)


def misfit(problem: str, place: str = "") -> NoReturn:
    """Raise a `BadRecord` with *problem* at *place* inside the value."""
    raise BadRecord(place, problem)


def within(place: str, check: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401
    """Return `check(value)`, and prefix the place of a `BadRecord` with *place*."""
    try:
        return check(value)
    except BadRecord as error:
        raise BadRecord(f"{place}{error.place}", error.problem) from error.__cause__


@cache
def exact(kind: datatype.Decimal) -> tuple[Decimal, Context]:
    """Return the unit to quantize by, and a context that raises if digits would be lost."""
    context = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
    return Decimal(1).scaleb(-kind.scale), context


def plain_types(
    field: Field, types: Mapping[str, tuple[type, ...]] = _PLAIN
) -> frozenset[type]:
    """Return the Python types in *types* for the column, with NoneType if it is nullable."""
    plain = types.get(field.type.name, ()) if isinstance(field.type, Atom) else ()
    return frozenset((*plain, NoneType) if field.nullable else plain)


def _field(field: Field) -> Check:
    check, place = check_of(field.type), f".{field.name}"

    def fits(value: object) -> None:
        if value is None:  # a nullable field accepts None before it gets here
            misfit("is None, but the column is not null", place)
        within(place, check, value)

    return fits


def _is_no(value: object, kind: object, way_out: str = "") -> NoReturn:
    hint = f"; {way_out}" if way_out else ""
    misfit(f"{shown(value)} (of type {type(value).__name__}) does not fit {kind}{hint}")


def _atom(name: str) -> Check:
    if name in _BITS:
        return _integer(name)
    return _float(name) if name in ("float", "double") else _instance(name)


def _integer(name: str) -> Check:
    low, high = -(1 << _BITS[name] - 1), (1 << _BITS[name] - 1) - 1

    def check(value: Any) -> None:  # noqa: ANN401
        if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
            _is_no(value, name, "convert it with int(…)")
        if not low <= value <= high:
            misfit(f"{shown(value)} is out of range for {name}, {low} to {high}")

    return check


def _float(name: str) -> Check:
    largest = FLOAT_MAX if name == "float" else float("inf")

    def check(value: Any) -> None:  # noqa: ANN401
        if isinstance(value, bool) or not isinstance(value, int | float):
            _is_no(value, name, "convert it with float(…)")
        try:
            number = float(value)
        except OverflowError:
            misfit(f"{shown(value)} is out of range for {name}")
        if isinstance(value, int) and number != value:
            misfit(f"{shown(value)} would lose digits as {name}; convert it with float(…)")
        if abs(number) > largest and not isinf(number):
            misfit(f"{shown(value)} is out of range for {name}, up to {FLOAT_MAX:.8g}")

    return check


def _instance(name: str) -> Check:
    types = _PYTHON[name]

    def check(value: object) -> None:
        # a datetime is an instance of date, but would lose its time
        if not isinstance(value, types) or (name == "date" and isinstance(value, dt.datetime)):
            _is_no(value, name)
        if isinstance(value, dt.datetime):
            _zoned(value, name)

    return check


def _zoned(value: dt.datetime, name: str) -> None:
    zoned = value.utcoffset() is not None
    if name == "timestamp" and not zoned:
        misfit(f"{value} has no time zone; give it a tzinfo, or use timestamp_ntz")
    if name == "timestamp_ntz" and zoned:
        misfit(f"{value} has a time zone; use timestamp, or remove its tzinfo")


def _decimal(kind: datatype.Decimal, value: object) -> None:
    if not isinstance(value, Decimal) or not value.is_finite():
        _is_no(value, kind, "use a finite decimal.Decimal")
    unit, context = exact(kind)
    try:
        value.quantize(unit, context=context)
    except (Inexact, InvalidOperation):
        misfit(f"{shown(value)} has more digits than {kind}; round it first")


def _array(element: Field) -> Check:
    plain, check = plain_types(element), check_of(element.type)

    def fits(values: object) -> None:
        if not isinstance(values, list | tuple):
            _is_no(values, "array", "use a list")
        for i, value in enumerate(values):
            if type(value) not in plain:
                within(f"[{i}]", check, value)

    return fits


def _map(check_key: Check, value_field: Field) -> Check:
    plain, check = plain_types(value_field), check_of(value_field.type)

    def fits(values: object) -> None:
        if not isinstance(values, dict):
            _is_no(values, "map", "use a dict")
        for key, value in values.items():
            within(".key", check_key, key)
            if type(value) not in plain:
                within(f"[{shown(key)}]", check, value)
        if sum(key != key for key in values) > 1:  # noqa: PLR0124 - only NaN is not itself
            misfit("has two NaN keys")

    return fits


def _struct(kind: Struct) -> Check:
    check = check_record(Schema(kind.fields))

    def fits(value: object) -> None:
        if not isinstance(value, tuple):
            _is_no(value, kind, "use a tuple, in the order of its fields")
        check(value)

    return fits

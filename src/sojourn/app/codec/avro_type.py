"""Matches columns with the fields of an Avro schema, and converts values for `fastavro`."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.type_check import exact, misfit, within
from sojourn.errors import BadSchema
from sojourn.text import shown

AvroType: TypeAlias = Any
"""A type in Avro, as parsed JSON: a name, a union, or a definition."""
Named: TypeAlias = Mapping[str, AvroType]
"""The named types of a schema."""
Convert: TypeAlias = Callable[[Any], Any]

# The Avro types of each simple column type; a logical type follows its underlying type.
_FITS = {
    "string": ("string", "enum"),
    "boolean": ("boolean",),
    "tinyint": ("int",),
    "smallint": ("int",),
    "int": ("int",),
    "bigint": ("long",),
    "float": ("float",),
    "double": ("double",),
    "date": ("int date",),
    "timestamp": ("long timestamp-micros", "long timestamp-millis"),
    "timestamp_ntz": ("long local-timestamp-micros", "long local-timestamp-millis"),
    "binary": ("bytes", "fixed"),
}
LOGICAL = {"decimal"} | {
    name.split()[1] for names in _FITS.values() for name in names if " " in name
}
"""The logical types of columns; for others, such as uuid, the underlying type is used."""


def field_writers(
    place: str, fields: Iterable[Field], record: AvroType, named: Named
) -> dict[str, Convert]:
    """Return a converter for each column to its field in the Avro type *record*.

    Raise a `BadSchema` that names the column if the field is missing or has another type.
    """
    known = {field["name"]: field["type"] for field in record["fields"]}
    for field in fields:
        if field.name not in known:
            problem = f"the Avro schema has no field {shown(field.name)}"
            way_out = f"add it there, or write one of {', '.join(known)}"
            raise BadSchema(f"{place}.{field.name}", problem, way_out)
    return {
        field.name: partial(
            within,
            f".{field.name}",
            _writer(f"{place}.{field.name}", field.type, known[field.name], named),
        )
        for field in fields
    }


def is_required(field: AvroType) -> bool:
    """Return whether a field of a record must be written: no default, and not nullable."""
    return "default" not in field and not _is_optional(field["type"])


def reader(kind: DataType) -> Convert | None:
    """Return a converter from `fastavro` to values of *kind*; None if none is needed."""
    match kind:
        case Struct(fields):
            parts = tuple((field.name, reader(field.type)) for field in fields)
            return lambda value: tuple(_read(read, value.get(name)) for name, read in parts)
        case Array(element) if read := reader(element):
            return lambda values: [_read(read, value) for value in values]
        case Map(_, element) if read := reader(element):
            return lambda values: {key: _read(read, value) for key, value in values.items()}
        case _:
            return None


def _read(read: Convert | None, value: object) -> Any:  # noqa: ANN401
    return value if value is None or read is None else read(value)


def _writer(place: str, kind: DataType, avro: AvroType, named: Named) -> Convert:
    """Return a converter that raises a `BadRecord` for None if the Avro type has no null."""
    optional, write = _is_optional(avro), _value_writer(place, kind, avro, named)

    def written(value: object) -> object:
        if value is not None:
            return write(value)
        return None if optional else misfit("is None, but its Avro type has no null")

    return written


def _value_writer(place: str, kind: DataType, avro: AvroType, named: Named) -> Convert:
    avro = _definition(avro, named)
    name = _name(avro)
    match kind, name:
        case Struct(fields), "record":
            parts = field_writers(place, fields, avro, named)
            return lambda values: {
                name: write(value)
                for (name, write), value in zip(parts.items(), values, strict=True)
            }
        case Array(element), "array":
            write = _writer(f"{place}[]", element, avro["items"], named)
            return lambda values: [within(f"[{i}]", write, v) for i, v in enumerate(values)]
        case Map(Atom("string"), element), "map":
            write = _writer(f"{place}[]", element, avro["values"], named)
            return lambda values: {
                key: within(f"[{shown(key)}]", write, value) for key, value in values.items()
            }
        case datatype.Decimal(), _ if name in _names(kind):
            unit, context = exact(kind)
            return lambda value: value.quantize(unit, context=context)
        case Atom(atom), _ if name in _FITS[atom]:
            return _checked(name, avro)
    wanted = " or ".join(_names(kind))
    problem = f"the column is {kind}, but the Avro type is {name}"
    raise BadSchema(place, problem, f"it must be {wanted}; change the one or the other")


def _checked(name: str, avro: AvroType) -> Convert:
    """Return a converter that checks values of an enum, and the length of a fixed type."""
    if name == "enum":
        symbols = avro["symbols"]
        return lambda value: (
            value if value in symbols else misfit(f"{shown(value)} is none of {symbols}")
        )
    if name == "fixed":
        size = avro["size"]
        return lambda value: (
            value if len(value) == size else misfit(f"has {len(value)} bytes, not {size}")
        )
    return lambda value: value


def _is_optional(avro: AvroType) -> bool:
    return isinstance(avro, list) and "null" in avro


def _definition(avro: AvroType, named: Named) -> AvroType:
    """Return the definition of a type: names are resolved, and a null in a union is removed."""
    if isinstance(avro, list):
        rest = [each for each in avro if each != "null"]
        return _definition(rest[0], named) if len(rest) == 1 else {"type": "union"}
    if isinstance(avro, str):
        return named.get(avro, {"type": avro})
    return avro


def _name(avro: AvroType) -> str:
    logical = avro.get("logicalType")
    if logical == "decimal":
        logical = f"decimal({avro['precision']},{avro.get('scale', 0)})"
    return f"{avro['type']} {logical}" if logical else str(avro["type"])


def _names(kind: DataType) -> tuple[str, ...]:
    """Return the Avro types that fit *kind*."""
    match kind:
        case Atom(name):
            return _FITS[name]
        case datatype.Decimal():
            return f"bytes {kind}", f"fixed {kind}"
        case Array():
            return ("array",)
        case Map(key):
            return ("map",) if key == Atom("string") else ("a map with keys of type string",)
        case Struct():
            return ("record",)

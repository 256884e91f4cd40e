"""The Avro schema of columns, as an author would write it."""

from itertools import count

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, Field, Map, Struct
from sojourn.app.schema import Schema

ATOMS = {
    "string": "string",
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
    "binary": "bytes",
}


def avro_schema(schema, numbers=None):
    """Return a record with a field for each column, with null as its default if it has one."""
    return _record(schema.fields, numbers or count())


def _record(fields, numbers):
    return {
        "type": "record",
        "name": f"r{next(numbers)}",
        "fields": [
            {"name": field.name, "type": ["null", _type(field.type, numbers)], "default": None}
            if field.nullable
            else {"name": field.name, "type": _type(field.type, numbers)}
            for field in fields
        ],
    }


def _type(kind, numbers):
    match kind:
        case Atom(name):
            return ATOMS[name]
        case datatype.Decimal(precision, scale):
            digits = {"precision": precision, "scale": scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case Array(element):
            return {"type": "array", "items": ["null", _type(element, numbers)]}
        case Map(_, value):
            return {"type": "map", "values": ["null", _type(value, numbers)]}
        case Struct(fields):
            return _record(fields, numbers)


def avro_able(schema):
    """Return *schema* with names that Avro has, and text as the keys of maps."""
    return Schema(_able(Struct(schema.fields)).fields)


def _able(kind):
    match kind:
        case Array(element):
            return Array(_able(element))
        case Map(_, value):
            return Map(Atom("string"), _able(value))
        case Struct(fields):
            return Struct(
                tuple(
                    Field(f"c{number}", _able(field.type), field.nullable)
                    for number, field in enumerate(fields)
                )
            )
        case _:
            return kind

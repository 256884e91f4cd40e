"""What Spark calls the columns it has made, in our words."""

from pyspark.sql import types

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.schema import Schema
from sojourn.errors import BadSchema

__all__ = ["same_kind", "schema_of"]


def same_kind(one: DataType, other: DataType) -> bool:
    """Tell whether two types are the same but for what may be null."""
    match one, other:
        case Array(mine), Array(yours):
            return same_kind(mine, yours)
        case Map(), Map():
            return one.key == other.key and same_kind(one.value, other.value)
        case Struct(mine), Struct(yours) if len(mine) == len(yours):
            return all(
                a.name == b.name and same_kind(a.type, b.type)
                for a, b in zip(mine, yours, strict=True)
            )
        case _:
            return one == other


def schema_of(made: types.StructType) -> Schema:
    """Return the schema of columns that Spark has made, or raise a `BadSchema`.

    >>> whole, word = types.LongType(), types.StringType()
    >>> made = types.StructType().add("word", word).add("n", whole, nullable=False)
    >>> print(schema_of(made))
    word string, n bigint not null
    """
    return Schema(tuple(_field(field) for field in made.fields))


def _field(field: types.StructField) -> Field:
    try:
        return Field(field.name, _kind(field.dataType), field.nullable)
    except BadSchema as error:
        place = f"schema.{field.name}{error.place.removeprefix('schema')}"
        raise BadSchema(place, error.problem, error.way_out) from None


def _kind(made: types.DataType) -> DataType:
    match made:
        case types.DecimalType():
            return datatype.Decimal(made.precision, made.scale)
        case types.ArrayType():
            return Array(_kind(made.elementType))
        case types.MapType():
            return Map(_kind(made.keyType), _kind(made.valueType))
        case types.StructType():
            return Struct(tuple(_field(field) for field in made.fields))
        case types.StringType() | types.CharType() | types.VarcharType():
            return Atom("string")
    if (name := datatype.SYNONYMS.get(made.simpleString())) is None:
        problem = f"{made.simpleString()} is not supported as the type of a column"
        raise BadSchema("schema", problem, "cast it, as in cast(… as string)")
    return Atom(name)

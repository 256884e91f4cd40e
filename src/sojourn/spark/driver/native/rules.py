"""What a schema demands and Spark's JSON does not look at: nulls, and keys of maps."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as sql

from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.spark.driver.native.changes import Change, read_key

__all__ = ["breaks"]

_TEXT = Atom("string")


def breaks(kind: DataType) -> Change | None:
    """Return what tells whether a value, parsed, breaks a rule that `from_json` has not."""
    match kind:
        case Array(element) if (inner := breaks(element)) is not None:
            return lambda value: sql.exists(value, inner)
        case Map(key, element):
            return _map_breaks(key, breaks(element))
        case Struct(fields):
            return _any([_field_breaks(field) for field in fields])
        case _:
            return None


def _map_breaks(key: DataType, inner: Change | None) -> Change | None:
    rules: list[Change | None] = []
    if key != _TEXT:
        rules.append(
            lambda value: sql.exists(
                sql.map_keys(value), lambda name: read_key(key, name).isNull()
            )
        )
    if inner is not None:
        rules.append(lambda value: sql.exists(sql.map_values(value), inner))
    return _any(rules)


def _field_breaks(field: Field) -> Change | None:
    inner = breaks(field.type)
    rules: list[Change | None] = []
    if not field.nullable:
        rules.append(lambda value: value[field.name].isNull())
    if inner is not None:
        rules.append(lambda value: inner(value[field.name]))
    return _any(rules)


def _any(rules: list[Change | None]) -> Change | None:
    given = [rule for rule in rules if rule is not None]
    if not given:
        return None

    def broken(value: Column) -> Column:
        # a part that is null breaks nothing by itself
        found = (sql.coalesce(rule(value), sql.lit(False)) for rule in given)
        return value.isNotNull() & reduce(Column.__or__, found)

    return broken

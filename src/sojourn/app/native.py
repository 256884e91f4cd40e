"""Operators in Spark SQL: projections and aggregations."""

from collections.abc import Iterable, Mapping

from sojourn.app.datatype import Atom, Field, Struct
from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema, parse_schema
from sojourn.app.settings import settings_of
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication, BadSchema
from sojourn.text import shown


def native_operator(
    name: str,
    read: Stream,
    columns: Mapping[str, str],
    emits: str | Schema | None,
    settings: Mapping[str, object],
    by: str | Iterable[str] | None = None,
) -> NativeOperator:
    """Return a projection, or an aggregation if grouped *by* columns."""
    place, groups = f"operators.{name}", (by,) if isinstance(by, str) else tuple(by or ())
    _check_expressions(place, columns)
    for column in groups:
        if column not in read.columns:
            problem = f"the stream {read.name} has no column {shown(column)}"
            way_out = f"write one or more of {', '.join(read.columns)}"
            raise BadApplication(f"{place}.by", problem, way_out)
    made = _made(place, name, (*groups, *columns), emits)
    return NativeOperator(
        name=name,
        kind="project" if by is None else "aggregate",
        reads=(read,),
        emits=(made,),
        columns=dict(columns),
        groups=groups,
        **settings_of(place, settings, (made,), native=True),
    )


def _check_expressions(place: str, columns: object) -> None:
    example = 'write {"n": "length(word)"}'
    if not isinstance(columns, Mapping) or not columns:
        problem = f"{shown(columns)} does not map column names to expressions"
        raise BadApplication(f"{place}.columns", problem, example)
    for column, expression in columns.items():
        if not isinstance(expression, str) or not expression.strip():
            problem = f"{shown(expression)} is not a Spark SQL expression"
            raise BadApplication(f"{place}.columns.{column}", problem, example)


def _made(
    place: str, name: str, columns: tuple[str, ...], emits: str | Schema | None
) -> Stream:
    try:
        Struct(tuple(Field(column, Atom("string")) for column in columns))
    except BadSchema as error:
        raise BadSchema(f"{place}.columns", error.problem, error.way_out) from None
    if emits is None:
        return Stream(name=name, columns=columns, schema=None)
    schema = emits if isinstance(emits, Schema) else parse_schema(emits, place=f"{place}.emits")
    if schema.names != columns:
        problem = f"its columns are {', '.join(columns)}, but emits= is {schema}"
        raise BadSchema(f"{place}.emits", problem, "give each column its type, in this order")
    return Stream(name=name, columns=columns, schema=schema)

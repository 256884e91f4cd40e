"""What an operator keeps for each key: fields with types and defaults."""

import decimal
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sojourn.app.datatype import Atom, Field
from sojourn.app.ddl import parse_fields
from sojourn.app.fit import check_of, within
from sojourn.app.reading import reader
from sojourn.app.schema import Schema
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication, BadRecord, BadSchema
from sojourn.topology.check import shown

__all__ = [
    "DeclaredState",
    "StateFields",
    "check_keys",
    "key_fields",
    "key_values",
    "state_fields",
]

DeclaredState: TypeAlias = str | Mapping[str, object]
"""Columns as text in Spark's DDL, or defaults by name; a pair is a type and a default."""

_EXAMPLES = {bool: "boolean", int: "bigint", float: "double", str: "string", bytes: "binary"}
_EXAMPLE = 'write state={"n": 0, "seen": ("array<string>", [])}, or Spark\'s DDL as text'


@dataclass(frozen=True)
class StateFields:
    """The fields of a state, and what they are for a key that has none yet.

    >>> fields = state_fields("operators.count.state", {"n": 0, "seen": ("array<string>", [])})
    >>> print(fields)
    n bigint, seen array<string>
    >>> fields.defaults
    {'n': 0, 'seen': []}
    """

    schema: Schema
    defaults: Mapping[str, Any]

    def __str__(self) -> str:
        return str(self.schema)


def state_fields(place: str, declared: DeclaredState) -> StateFields:
    """Return what *declared* says. Raise `BadApplication` if it is no state.

    A field that is given only a type is None for a key that has no state.
    """
    if isinstance(declared, str):
        return _made(place, parse_fields(declared, place), {})
    if not isinstance(declared, Mapping) or not declared:
        raise BadApplication(place, f"{shown(declared)} is not a state", _EXAMPLE)
    fields: list[Field] = []
    defaults: dict[str, object] = {}
    for name, value in declared.items():
        kind, default = _typed(f"{place}.{name}", value)
        fields += parse_fields(f"`{str(name).replace('`', '``')}` {kind}", f"{place}.{name}")
        defaults[str(name)] = default
    return _made(place, tuple(fields), defaults)


def _made(place: str, fields: Sequence[Field], defaults: Mapping[str, object]) -> StateFields:
    for field in fields:
        default = defaults.get(field.name)
        if default is None:
            if not field.nullable:
                problem = "it is not null, but has no default"
                raise BadApplication(f"{place}.{field.name}", problem, _EXAMPLE)
            continue
        try:
            check_of(field.type)(default)
        except BadRecord as error:
            raise BadApplication(f"{place}.{field.name}", error.problem, _EXAMPLE) from error
    try:
        schema = Schema(tuple(fields))
    except BadSchema as error:
        raise BadApplication(place, error.problem, error.way_out) from error
    return StateFields(schema, {field.name: defaults.get(field.name) for field in fields})


def _typed(place: str, value: object) -> tuple[str, object]:
    """Return the type of a field in DDL, and its default."""
    match value:
        case (str(kind), default):
            return kind, default
    kind = _EXAMPLES.get(type(value), "")
    if not kind:
        problem = f"{shown(value)} does not tell the type of the field"
        way_out = f'give the type too: ("array<string>", {shown(value)})'
        raise BadApplication(place, problem, way_out)
    return kind, value


def check_keys(place: str, reads: Sequence[Stream]) -> None:
    """Raise `BadApplication` unless all streams are read by keys of the same types."""
    kinds = []
    for stream in reads:
        if stream.grouping != "key":
            problem = (
                f"it keeps a state for each key, but stream {stream.name} is not read by key"
            )
            way_out = f"write {stream.name}.by(…)"
            raise BadApplication(f"{place}.reads", problem, way_out)
        kinds.append(_key_types(stream))
    if any(kind != kinds[0] for kind in kinds):
        told = [f"{s.name} by {', '.join(kind)}" for s, kind in zip(reads, kinds, strict=True)]
        problem = f"keys are of different types: {'; '.join(told)}"
        raise BadApplication(f"{place}.reads", problem, "read all streams by the same types")


def key_fields(stream: Stream) -> tuple[Field, ...]:
    """Return the columns of the key of a stream, which has a schema."""
    fields = () if stream.schema is None else stream.schema.fields
    columns = {field.name: field for field in fields}
    return tuple(columns[name] for name in stream.key)


def key_values(fields: Sequence[Field], key: str) -> tuple[Any, ...]:
    """Return the values of the columns of a key. Raise `BadRecord` if they do not fit.

    >>> key_values(parse_fields("day date, n int", "key"), '["2026-01-31", null]')
    (datetime.date(2026, 1, 31), None)
    """
    values = json.loads(key, parse_float=decimal.Decimal)
    return tuple(
        None if value is None else within(f"key.{field.name}", reader(field.type), value)
        for field, value in zip(fields, values, strict=True)
    )


def _key_types(stream: Stream) -> tuple[str, ...]:
    if stream.schema is None:
        return ("unknown",) * len(stream.key)
    types = {field.name: field.type for field in stream.schema.fields}
    return tuple(
        kind.name if isinstance(kind := types[column], Atom) else str(kind)
        for column in stream.key
    )

"""The state that an operator keeps for each key: fields with types and defaults."""

import decimal
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sojourn.app.datatype import Atom, Field
from sojourn.app.reading import reader
from sojourn.app.schema import Schema, parse_fields
from sojourn.app.stream import Stream
from sojourn.app.type_check import check_of, within
from sojourn.app.writing import key_of_json
from sojourn.errors import BadApplication, BadRecord, BadSchema
from sojourn.text import shown

DeclaredState: TypeAlias = str | Mapping[str, object]
"""Columns in Spark's DDL, or defaults by name; a pair is a type and a default."""

_EXAMPLES = {bool: "boolean", int: "bigint", float: "double", str: "string", bytes: "binary"}
_EXAMPLE = 'write state={"n": 0, "seen": ("array<string>", [])}, or Spark\'s DDL as text'


@dataclass(frozen=True)
class StateFields:
    """The fields of a state, and their initial values for a new key.

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
    """Parse a declared state. Raise `BadApplication` if it is not valid.

    A field with only a type defaults to None.
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
        problem = f"{shown(value)} is not enough to infer the type of the field"
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
        kinds.append([str(field.type) for field in key_fields(stream)])
    if any(kind != kinds[0] for kind in kinds):
        told = [f"{s.name} by {', '.join(kind)}" for s, kind in zip(reads, kinds, strict=True)]
        problem = f"keys are of different types: {'; '.join(told)}"
        raise BadApplication(f"{place}.reads", problem, "read all streams by the same types")


def key_fields(stream: Stream) -> tuple[Field, ...]:
    """Return the key columns of a stream with a schema."""
    fields = () if stream.schema is None else stream.schema.fields
    columns = {field.name: field for field in fields}
    return tuple(columns[name] for name in stream.key)


def key_values(fields: Sequence[Field], key: str) -> tuple[Any, ...]:
    """Parse a key into the values of its columns. Raise `BadRecord` if they do not fit.

    >>> key_values(parse_fields("day date, n int", "key"), '["2026-01-31", null]')
    (datetime.date(2026, 1, 31), None)
    """
    values = json.loads(key, parse_float=decimal.Decimal)
    return tuple(
        None if value is None else within(f"key.{field.name}", reader(field.type), value)
        for field, value in zip(fields, values, strict=True)
    )


def key_of_message(fields: Sequence[Field], key: bytes | None) -> str | None:
    """Convert the key of a Kafka message to a key in Sojourn's form, a JSON list of values.

    The message key must be a JSON object with these columns or, for a single column, its value
    in JSON or as plain text. Return None if it is neither.

    >>> fields = parse_fields("user string", "key")
    >>> [key_of_message(fields, key) for key in (b'{"user":"ada"}', b'"ada"', b"ada", None)]
    ['["ada"]', '["ada"]', '["ada"]', None]
    >>> key_of_message(parse_fields("user string, day date", "key"), b"ada")
    """
    if key is None:
        return None
    try:
        text = key.decode()
        return json.dumps(_key_parts(fields, text))
    except (BadRecord, ArithmeticError, ValueError, RecursionError):
        return None


def _key_parts(fields: Sequence[Field], text: str) -> list[object]:
    """Return the parts of a key. Raise `ValueError` or `BadRecord` if *text* lacks one."""
    alone = len(fields) == 1
    try:
        value = json.loads(text, parse_float=decimal.Decimal)
    except ValueError:
        value = text  # as most producers write it
    if isinstance(value, dict) and all(field.name in value for field in fields):
        values = [value[field.name] for field in fields]
    elif alone and fields[0].type == Atom("string"):
        values = [value if isinstance(value, str) else text]
    elif alone:
        values = [value]
    else:
        raise ValueError("it is not an object with these columns")
    return [key_of_json(field)(part) for field, part in zip(fields, values, strict=True)]

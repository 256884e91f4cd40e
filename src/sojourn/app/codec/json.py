"""Records as JSON, which any client can write and read.

Binary columns are in Kafka headers with the name of the column, not in the JSON, where base64
would make them a third larger.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sojourn.app import datatype
from sojourn.app.codec.base import NO_BINARIES, Payload
from sojourn.app.datatype import Atom, Struct, nested
from sojourn.app.reading import as_is, read_field
from sojourn.app.schema import Schema
from sojourn.app.type_check import check_record
from sojourn.app.writing import Writer, key_of_json, writer
from sojourn.errors import BadRecord
from sojourn.text import shown

HALF_A_LETTER = "has half a surrogate pair, which is not valid UTF-8; replace it"
"""The problem of text that cannot be encoded in UTF-8."""

_json = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


def encode(schema: Schema, record: tuple[object, ...]) -> Payload:
    """Encode *record* for Kafka, or raise a `BadRecord` that names the column.

    >>> from sojourn.app.schema import parse_schema
    >>> encode(parse_schema("name string, size double, photo binary"), ("a", 2.5, b"1234"))
    (b'{"name":"a","size":2.5}', {'photo': b'1234'})
    """
    return _codec(schema).encode(record)


def decode(
    schema: Schema, body: bytes, binaries: Mapping[str, bytes] = NO_BINARIES
) -> tuple[Any, ...]:
    """Decode a message into a record, or raise a `BadRecord` with the reason.

    Missing columns are None; columns that are not in the schema are ignored.

    >>> from sojourn.app.schema import parse_schema
    >>> decode(parse_schema("word string, n int"), b'{"n": 3, "more": 7}')
    (None, 3)
    """
    return _codec(schema).decode(body, binaries)


class JsonCodec:
    lacking = ()

    def __init__(self, schema: Schema, stream: str = "record") -> None:
        self._stream, self._names, self._binaries = stream, schema.names, schema.binaries
        self._check = check_record(schema)
        self._writers = _writers(schema, odd=False)
        self._odd_writers = _writers(schema, odd=True)
        # bytes: the values of binary columns, which come from headers
        self._columns = tuple(
            (field.name, as_is(field) | {bytes}, read_field(field)) for field in schema.fields
        )
        self._parse = _parser(schema).decode
        self._key_parts = {field.name: key_of_json(field) for field in schema.fields}

    def encode(self, record: tuple[object, ...]) -> Payload:
        named: dict[str, Any] = {}
        try:
            self._check(record)
            named = dict(zip(self._names, record, strict=True))
            beside = {
                name: bytes(value)
                for name in self._binaries
                if (value := named.pop(name)) is not None
            }
            return self._body(named).encode(), beside
        except BadRecord as error:
            raise self._bad(error.place, error.problem) from error.__cause__
        except UnicodeEncodeError as error:
            column = next(name for name in named if not is_text(named[name]))
            raise self._bad(f".{column}", HALF_A_LETTER) from error

    def _body(self, named: dict[str, Any]) -> str:
        try:
            return _json(_written(named, self._writers))
        except ValueError:  # NaN or infinity: retry with the slower writers
            return _json(_written(named, self._odd_writers))

    def decode(
        self, body: bytes, binaries: Mapping[str, bytes] = NO_BINARIES
    ) -> tuple[Any, ...]:
        try:
            named = self._parse(str(body, "utf-8"))
        except RecursionError as error:
            raise self._bad("", f"{shown(body)} is nested too deeply; write it flat") from error
        except (ArithmeticError, ValueError) as error:
            raise self._bad("", f"{shown(body)} is not JSON: {error}") from error
        if not isinstance(named, dict):
            problem = f'{shown(named)} is not a JSON object; write {{"column": value}}'
            raise self._bad("", problem)
        # only an escape can give half a surrogate pair: the body itself is valid UTF-8
        if b"\\u" in body and not is_text(named):
            raise self._bad("", HALF_A_LETTER)
        for name in self._binaries:
            if name in binaries:
                named[name] = binaries[name]
        value: Any
        try:
            return tuple(
                value if type(value := named.get(name)) in plain else read(value)
                for name, plain, read in self._columns
            )
        except BadRecord as error:
            raise self._bad(error.place, error.problem) from error.__cause__

    def key(self, body: bytes, columns: tuple[str, ...]) -> str | None:
        try:
            named = self._parse(str(body, "utf-8"))
            return json.dumps([self._key_parts[name](named.get(name)) for name in columns])
        except (BadRecord, ArithmeticError, ValueError, AttributeError, RecursionError):
            return None

    def _bad(self, place: str, problem: str) -> BadRecord:
        return BadRecord(f"{self._stream}{place}", problem)


_codec = lru_cache(maxsize=1024)(JsonCodec)


def _writers(schema: Schema, *, odd: bool) -> tuple[tuple[str, Writer], ...]:
    """Return the columns whose values must be converted for JSON, with their converters."""
    return tuple(
        (field.name, write)
        for field in schema.fields
        if field.type != Atom("binary") and (write := writer(field.type, odd=odd))
    )


def _written(named: dict[str, Any], writers: tuple[tuple[str, Writer], ...]) -> dict[str, Any]:
    if not writers:
        return named
    written = named.copy()
    for name, write in writers:
        if (value := named[name]) is not None:
            written[name] = write(value)
    return written


def _parser(schema: Schema) -> json.JSONDecoder:
    kinds = nested(Struct(schema.fields))
    # A decimal must not be parsed as a float, which would lose digits.
    exact = any(isinstance(kind, datatype.Decimal) for kind in kinds)
    return json.JSONDecoder(parse_float=Decimal if exact else None)


def is_text(value: object) -> bool:
    """Return whether all text in *value* can be encoded in UTF-8."""
    left = [value]
    while left:  # no recursion: a record from outside may be nested deeply
        part = left.pop()
        if isinstance(part, dict):
            left += part.keys()
            left += part.values()
        elif isinstance(part, list | tuple):
            left += part
        elif isinstance(part, str):
            try:
                part.encode()
            except UnicodeEncodeError:
                return False
    return True

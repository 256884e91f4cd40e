"""Records in Avro's binary encoding, with a schema from a file or a schema registry.

The body has all columns, including binary ones. With a registry, a message begins with a zero
byte and the id of its writer schema in four bytes: Confluent's wire format.
"""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from sojourn.app.codec.avro_type import LOGICAL, AvroType, field_writers, is_required, reader
from sojourn.app.codec.base import NO_BINARIES, Payload
from sojourn.app.codec.json import HALF_A_LETTER, is_text
from sojourn.app.codec.schema_registry import Registry
from sojourn.app.datatype import Struct
from sojourn.app.schema import Schema
from sojourn.app.stream import Avro
from sojourn.app.type_check import check_record
from sojourn.app.writing import key_of_value
from sojourn.errors import BadRecord, BadSchema
from sojourn.text import shown

_MAGIC, _HEAD_BYTES = 0, 5
# An id that the registry does not know is cached for a while, so that not every record with it
# causes a request.
_UNKNOWN_FOR_S, _MOST_UNKNOWN = 60.0, 10_000


class AvroCodec:
    """The codec of a stream in Avro. Raise `BadSchema` if the columns do not fit.

    It caches up to *most_unknown* ids that the registry does not know. Decoding raises
    `RegistryAway` while the registry does not answer: retry with
    `sojourn.app.codec.schema_registry.outlast`.
    """

    def __init__(
        self,
        schema: Schema,
        stream: str,
        form: Avro,
        clock: Callable[[], float] = monotonic,
        *,
        most_unknown: int = _MOST_UNKNOWN,
    ) -> None:
        self._clock, self._unknown, self._most_unknown = clock, dict[int, float](), most_unknown
        self._stream, self._names, self._check = stream, schema.names, check_record(schema)
        self._registry = Registry(form.registry, form.patience_s) if form.registry else None
        place = f"streams.{stream}"
        number, text = self._found(place, form)
        named: dict[str, Any] = {}
        try:
            self._avro = _parsed(text, named)
        except ValueError as error:
            way_out = f"correct {form.file or form.subject}"
            raise BadSchema(
                place, f"{shown(text)} is not a valid Avro schema: {error}", way_out
            ) from error
        if not isinstance(self._avro, dict) or self._avro["type"] != "record":
            problem = f"the Avro schema is {shown(text)}, not a record"
            raise BadSchema(place, problem, "make it a record with a field for each column")
        self._writers = field_writers(place, schema.fields, self._avro, named)
        self._tuple = reader(Struct(schema.fields)) or tuple
        self._key_parts = {field.name: key_of_value(field) for field in schema.fields}
        self._head = b"" if number is None else bytes([_MAGIC]) + number.to_bytes(4, "big")
        self._written = {} if number is None else {number: self._avro}

    @property
    def lacking(self) -> tuple[str, ...]:
        required = (field["name"] for field in self._avro["fields"] if is_required(field))
        return tuple(name for name in required if name not in self._names)

    def encode(self, record: tuple[object, ...]) -> Payload:
        named: dict[str, Any] = {}
        body = BytesIO()
        body.write(self._head)
        try:
            self._check(record)
            for (name, write), value in zip(self._writers.items(), record, strict=True):
                named[name] = write(value)
            schemaless_writer(body, self._avro, named, disable_tuple_notation=True)
        except BadRecord as error:
            raise self._bad(error.place, error.problem) from error.__cause__
        except UnicodeEncodeError as error:
            column = next(name for name in named if not is_text(named[name]))
            raise self._bad(f".{column}", HALF_A_LETTER) from error
        except Exception as error:  # fastavro raises anything if a required field is missing
            reason = f"{type(error).__name__}: {error}"
            raise self._bad("", f"does not fit its Avro schema: {reason}") from error
        return body.getvalue(), {}

    def decode(
        self, body: bytes, binaries: Mapping[str, bytes] = NO_BINARIES
    ) -> tuple[Any, ...]:
        del binaries
        written = self._avro if self._registry is None else self._writers_schema(body)
        content = BytesIO(body[len(self._head) :])
        named: Any
        try:
            named = schemaless_reader(
                content, written, None if written is self._avro else self._avro
            )
        except Exception as error:  # fastavro raises anything on invalid bytes
            reason = f"{type(error).__name__}: {error}"
            problem = f"{shown(body)} does not fit its Avro schema: {reason}"
            raise self._bad("", problem) from error
        if rest := content.read():
            problem = f"{shown(body)} has {len(rest)} bytes left over after its Avro schema"
            raise self._bad("", problem)
        try:
            record: tuple[Any, ...] = self._tuple(named)
            self._check(record)
        except BadRecord as error:
            raise self._bad(error.place, error.problem) from error.__cause__
        return record

    def key(self, body: bytes, columns: tuple[str, ...]) -> str | None:
        try:
            named = dict(zip(self._names, self.decode(body), strict=True))
            return json.dumps([self._key_parts[column](named[column]) for column in columns])
        except BadRecord:
            return None

    def _found(self, place: str, form: Avro) -> tuple[int | None, str]:
        """Return the id of the schema, None without a registry, and its text."""
        if form.file:
            try:
                text = Path(form.file).read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                problem = f"the Avro schema {form.file} cannot be read: {error}"
                raise BadSchema(place, problem, "check the path") from error
            if self._registry is None:
                return None, text
            return self._registry.register(form.subject, text), text
        assert self._registry is not None  # noqa: S101 - there is a file, or a registry
        found = self._registry.latest(form.subject)
        if found is None:
            problem = f"the schema registry has no subject {form.subject}"
            way_out = "check the name; a schema from a file, Avro(file, …), is registered"
            raise BadSchema(place, problem, way_out)
        return found

    def _writers_schema(self, body: bytes) -> AvroType:
        """Return the writer schema of a message, by the id in its head."""
        if len(body) < _HEAD_BYTES or body[0] != _MAGIC:
            problem = f"{shown(body)} does not begin with a zero byte and the id of a schema"
            raise self._bad("", problem)
        number = int.from_bytes(body[1:_HEAD_BYTES], "big")
        if number not in self._written:
            text = self._asked(number)
            if text is None:
                raise self._bad("", f"the schema registry has no schema with the id {number}")
            try:
                self._written[number] = _parsed(text, {})
            except ValueError as error:
                problem = f"the schema with the id {number} is not valid Avro: {error}"
                raise self._bad("", problem) from error
        return self._written[number]

    def _asked(self, number: int) -> str | None:
        """Return the schema with the id *number*; None if the registry does not know it."""
        assert self._registry is not None  # noqa: S101 - the caller has checked it
        if self._unknown.get(number, 0.0) > self._clock():
            return None
        text = self._registry.schema(number)
        if text is None:
            if len(self._unknown) >= self._most_unknown:
                self._unknown.clear()
            self._unknown[number] = self._clock() + _UNKNOWN_FOR_S
        return text

    def _bad(self, place: str, problem: str) -> BadRecord:
        return BadRecord(f"{self._stream}{place}", problem)


def _parsed(text: str, named: dict[str, Any]) -> AvroType:
    """Return a schema parsed for `fastavro`, or raise a `ValueError`.

    Named types are added to *named*.
    """
    try:
        return parse_schema(json.loads(text, object_hook=_plain), named)
    except Exception as error:  # fastavro raises KeyError, TypeError and its own, among others
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """Drop a logical type that columns do not have, so that the type below it is read."""
    if part.get("logicalType", "decimal") not in LOGICAL:
        del part["logicalType"]
    return part

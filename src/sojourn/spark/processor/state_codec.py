"""Serialisation of the states of keys, which are dictionaries for functions."""

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import msgspec

from sojourn.app.datatype import Array, Atom, DataType, Decimal, Map, Struct
from sojourn.app.state import StateFields
from sojourn.app.type_check import check_of, plain_types
from sojourn.errors import BadRecord
from sojourn.text import shown

_ATOMS: dict[str, type] = {
    "string": str,
    "boolean": bool,
    "float": float,
    "double": float,
    "date": dt.date,
    "timestamp": dt.datetime,
    "timestamp_ntz": dt.datetime,
    "binary": bytes,
}
_encode = msgspec.msgpack.Encoder().encode


class StateCodec:
    """Encodes and decodes the states of an operator.

    A state that equals the defaults is empty, and takes no space.
    """

    def __init__(self, place: str, fields: StateFields) -> None:
        self._place = place
        self._checks = {
            field.name: (plain_types(field), check_of(field.type), field.nullable)
            for field in fields.schema.fields
        }
        types = {field.name: _python_type(field.type) | None for field in fields.schema.fields}
        kept: Any = TypedDict("kept", types, total=False)  # type: ignore[misc]
        decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kept)
        self._decode: Callable[[bytes], dict[str, Any]] = decoder.decode
        self._default = _encode(dict(fields.defaults))

    def decode(self, state: bytes) -> dict[str, Any]:
        """Return the fields; fields added since it was written have their defaults.

        Raise `BadRecord` if the type of a field has changed since.
        """
        found = self._decode(self._default)
        if state:
            try:
                found.update(self._decode(state))
            except msgspec.ValidationError as error:
                raise BadRecord(
                    self._place,
                    f"the stored state does not fit the declared fields: {error}; rename a "
                    "field whose type has changed, or start without this state (--fresh)",
                ) from error
        return found

    def encode(self, state: Mapping[str, Any]) -> bytes:
        """Return the bytes of a state; missing fields have their defaults again.

        Raise `BadRecord` if a field is unknown or has another type.
        """
        for name, value in state.items():
            if name not in self._checks:
                known = ", ".join(self._checks)
                problem = f"there is no field {shown(name)}; write one of {known}"
                raise BadRecord(self._place, problem)
            plain, check, nullable = self._checks[name]
            if type(value) not in plain and not (value is None and nullable):
                try:
                    check(value)
                except BadRecord as error:
                    place = f"{self._place}.{name}{error.place}"
                    raise BadRecord(place, error.problem) from error
        if len(state) < len(self._checks):
            state = {**self._decode(self._default), **state}
        encoded = _encode({name: state[name] for name in self._checks})
        return b"" if encoded == self._default else encoded


def _python_type(kind: DataType) -> Any:  # noqa: ANN401 - a type made of types
    match kind:
        case Atom(name):
            return _ATOMS.get(name, int)
        case Decimal():
            return decimal.Decimal
        case Array(element):
            return list[_python_type(element) | None]  # type: ignore[misc]
        case Map(key, value):
            return dict[_python_type(key), _python_type(value) | None]  # type: ignore[misc]
        case Struct(fields):
            return tuple[tuple(_python_type(field.type) | None for field in fields)]  # type: ignore[misc]

"""Values of columns as they are in a key: JSON that is the same for equal values.

Other clients write a number or a time as they like, 1 or 1.0, and a function sees the value.
"""

from collections.abc import Callable
from types import NoneType
from typing import Any, TypeAlias

from sojourn.app.datatype import Atom, Field
from sojourn.app.reading import reader
from sojourn.app.type_check import within
from sojourn.app.writing import writer

__all__ = ["KeyPart", "key_of_json", "key_of_value"]

KeyPart: TypeAlias = Callable[[Any], Any]
"""Returns what a key has of a column, as `json` writes it."""

_WHOLE = {"tinyint": int, "smallint": int, "int": int, "bigint": int}
_AS_IS = {"string": str, "boolean": bool, **_WHOLE}


def key_of_value(field: Field) -> KeyPart:
    """Return what makes a part of a key of a value of the column, or of None.

    >>> [key_of_value(Field("rate", Atom("double")))(value) for value in (2.5, -0.0, None)]
    [2.5, 0.0, None]
    """
    write = writer(field.type, odd=True)
    if write is None:
        return lambda value: value
    if field.type in (Atom("double"), Atom("float")):
        # a negative zero equals zero
        return lambda value: None if value is None else write(value + 0.0)
    return lambda value: None if value is None else write(value)


def key_of_json(field: Field) -> KeyPart:
    """Return what makes a part of a key of JSON. It raises `BadRecord` if that does not fit.

    >>> [key_of_json(Field("rate", Atom("double")))(value) for value in (1, 1.0, "INF", None)]
    [1.0, 1.0, 'Infinity', None]
    """
    read, write, place = reader(field.type), key_of_value(field), f".{field.name}"
    plain = _AS_IS.get(field.type.name) if isinstance(field.type, Atom) else None
    as_is = {plain, NoneType}

    def part(given: object) -> object:
        return given if type(given) in as_is else write(within(place, read, given))

    return part

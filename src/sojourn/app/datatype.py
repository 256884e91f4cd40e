"""The types of columns, with Spark's names."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from sojourn.errors import BadSchema
from sojourn.text import shown

_AtomName: TypeAlias = Literal[
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double",
    "date", "timestamp", "timestamp_ntz", "binary",
]  # fmt: skip

SYNONYMS: dict[str, _AtomName] = {
    **{name: name for name in get_args(_AtomName)},
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
"""Spark's names for types without parameters, mapped to the canonical name."""

MOST_DIGITS = 38
"""The maximum precision of a decimal in Spark."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A simple type: text, a number, a time, bytes."""

    name: _AtomName

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers with *precision* digits, *scale* of them after the decimal point."""

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= MOST_DIGITS and 0 <= self.scale <= self.precision):
            way_out = f"write 1 to {MOST_DIGITS} digits, and no more of them after the point"
            raise BadSchema("schema", f"{self} is not a valid type", way_out)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    element: "DataType"

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """A dict of values by key, whose type must be an `Atom` or a `Decimal`."""

    key: "DataType"
    value: "DataType"

    def __post_init__(self) -> None:
        if not isinstance(self.key, Atom | Decimal):
            problem = f"{self.key} cannot be the key of a map"
            raise BadSchema("schema", problem, "use a simple type, such as string or int")

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct."""

    name: str
    type: "DataType"
    nullable: bool = True
    """Whether the value may be None."""

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            problem = f"{shown(self.name)} is not a valid column name"
            raise BadSchema("schema", problem, "use printable characters")

    def __str__(self) -> str:
        return f"{quoted(self.name)} {self._rest()}"

    def _rest(self) -> str:
        return str(self.type) if self.nullable else f"{self.type} not null"

    def inside(self) -> str:
        """Return the field in the DDL syntax of a struct, with a colon."""
        return f"{quoted(self.name)}: {self._rest()}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields; a value is a tuple in this order."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        if not self.fields:
            raise BadSchema("schema", "there are no columns", "write at least one")
        times = Counter(field.name.lower() for field in self.fields)
        for field in self.fields:
            if times[field.name.lower()] > 1:
                raise BadSchema(
                    "schema",
                    f"there are two columns {shown(field.name)}",
                    "rename one: names in Spark are case-insensitive",
                )

    def __str__(self) -> str:
        return f"struct<{', '.join(field.inside() for field in self.fields)}>"


DataType: TypeAlias = Atom | Decimal | Array | Map | Struct


def quoted(name: str) -> str:
    """Return *name* as an identifier in Spark's DDL, in backticks where necessary.

    >>> quoted("word"), quoted("no. of `words`")
    ('word', '`no. of ``words```')
    """
    # a name of digits alone would be a number
    plain = name.isascii() and name.replace("_", "").isalnum() and not name[0].isdigit()
    return name if plain else f"`{name.replace('`', '``')}`"


def nested(kind: DataType) -> Iterator[DataType]:
    """Yield *kind* and all types nested in it."""
    yield kind
    match kind:
        case Array(element):
            yield from nested(element)
        case Map(key, value):
            yield key
            yield from nested(value)
        case Struct(fields):
            for field in fields:
                yield from nested(field.type)
        case _:
            return

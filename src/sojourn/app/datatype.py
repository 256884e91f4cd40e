"""The types that a column may have: those of Spark, by the names that Spark has for them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from sojourn.errors import BadSchema
from sojourn.topology.check import shown

__all__ = [
    "MOST_DIGITS",
    "SYNONYMS",
    "Array",
    "Atom",
    "DataType",
    "Decimal",
    "Field",
    "Map",
    "Struct",
    "nested",
    "quoted",
]

AtomName: TypeAlias = Literal[
    "string",
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
]

SYNONYMS: dict[str, AtomName] = {
    **{name: name for name in get_args(AtomName)},
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
"""Every name that Spark takes for a type without parameters, and the one we use."""

MOST_DIGITS = 38
"""What Spark's decimals hold."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A type without parts: text, a number, a time, bytes."""

    name: AtomName

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers of *precision* digits, *scale* of them after the point."""

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= MOST_DIGITS and 0 <= self.scale <= self.precision):
            way_out = f"write 1 to {MOST_DIGITS} digits, and not more after the point"
            raise BadSchema("schema", f"{self} cannot be", way_out)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of values of one type: a list."""

    element: "DataType"

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key: a dict. The key is a type without parts."""

    key: "DataType"
    value: "DataType"

    def __post_init__(self) -> None:
        if not isinstance(self.key, Atom | Decimal):
            problem = f"{self.key} cannot be the key of a map"
            raise BadSchema("schema", problem, "use text or a number")

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a part of a struct. *nullable* says whether it may be None."""

    name: str
    type: "DataType"
    nullable: bool = True

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            problem = f"{shown(self.name)} cannot be the name of a column"
            raise BadSchema("schema", problem, "write letters that can be printed")

    def __str__(self) -> str:
        return f"{quoted(self.name)} {self._rest()}"

    def _rest(self) -> str:
        return str(self.type) if self.nullable else f"{self.type} not null"

    def inside(self) -> str:
        """Return the field as it is written inside a struct."""
        return f"{quoted(self.name)}: {self._rest()}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named parts: a tuple in this order."""

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
                    "rename one: Spark takes small and capital letters for the same",
                )

    def __str__(self) -> str:
        return f"struct<{', '.join(field.inside() for field in self.fields)}>"


DataType: TypeAlias = Atom | Decimal | Array | Map | Struct


def quoted(name: str) -> str:
    """Return *name* as Spark takes it: in backticks unless it is plain.

    >>> quoted("word"), quoted("no. of `words`")
    ('word', '`no. of ``words```')
    """
    # a name of digits alone would be a number
    plain = name.isascii() and name.replace("_", "").isalnum() and not name[0].isdigit()
    return name if plain else f"`{name.replace('`', '``')}`"


def nested(kind: DataType) -> Iterator[DataType]:
    """Yield *kind* and every type inside it."""
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

"""The schema of a stream: its columns, in Spark's DDL."""

from dataclasses import dataclass

from sojourn.app.datatype import Atom, Field, Struct
from sojourn.app.ddl import parse_fields

__all__ = ["Schema", "parse_schema"]


@dataclass(frozen=True)
class Schema:
    """The columns of a stream.

    >>> schema = parse_schema("word STRING, n long, parts array<struct<a int>>")
    >>> print(schema)
    word string, n bigint, parts array<struct<a: int>>
    >>> schema.names
    ('word', 'n', 'parts')
    """

    # No slots: the hash is kept, because codecs are looked up by schema for every record.

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        Struct(self.fields)  # which has the same rules
        object.__setattr__(self, "_hash", hash(self.fields))

    def __hash__(self) -> int:
        """Return the hash, which is computed once."""
        return self.__dict__["_hash"]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def binaries(self) -> tuple[str, ...]:
        """The binary columns, which are in Kafka headers and not in the JSON."""
        return tuple(field.name for field in self.fields if field.type == Atom("binary"))


def parse_schema(text: object, *, place: str = "schema") -> Schema:
    """Return the schema that *text* gives in Spark's DDL.

    Raise a `BadSchema` that begins with *place* and gives the position of the error.

    >>> parse_schema("word strng", place="streams.words")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadSchema: streams.words: at character 6 of 'word strng': 'strng' is ...
    """
    return Schema(parse_fields(text, place))

"""What a stream's records look like: the columns, and how Spark writes them down."""

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
        """Return the hash that was worked out at the start."""
        return self.__dict__["_hash"]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def binaries(self) -> tuple[str, ...]:
        """The columns that travel beside the record as they are, and not in its JSON."""
        return tuple(field.name for field in self.fields if field.type == Atom("binary"))


def parse_schema(text: object, *, place: str = "schema") -> Schema:
    """Return the schema that *text* is in Spark's DDL.

    Raise a `BadSchema` that starts with *place* and says where in the text it is wrong.

    >>> parse_schema("word strng", place="streams.words")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadSchema: streams.words: at letter 6 of 'word strng': 'strng' is ...
    """
    return Schema(parse_fields(text, place))

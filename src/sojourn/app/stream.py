"""Streams of an application, and how their records are dealt out to processors."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sojourn.app.schema import Schema
from sojourn.check import shown
from sojourn.errors import BadApplication

__all__ = ["Grouping", "Sink", "Stream"]

Grouping: TypeAlias = Literal["shuffle", "key", "broadcast"]
"""Any processor gets a record; the one that has its key; or all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A flow of records, as an operator reads it.

    *schema* is None where only Spark knows the types: an expression made the stream, and its
    types were not given. *grouping* is the reader's: each reader has its own.

    >>> from sojourn.app.schema import parse_schema
    >>> words = Stream(name="words", columns=("word",), schema=parse_schema("word string"))
    >>> words.by("word").grouping
    'key'
    """

    name: str
    columns: tuple[str, ...]
    schema: Schema | None
    grouping: Grouping = "shuffle"
    key: tuple[str, ...] = ()

    def by(self, *columns: str) -> "Stream":
        """Return the stream, read so that within a host a key meets the same processor."""
        known = ", ".join(self.columns)
        if not columns:
            place, way_out = f"streams.{self.name}.by", f"write one or more of {known}"
            raise BadApplication(place, "no columns are named", way_out)
        for column in columns:
            if column not in self.columns:
                problem = f"there is no column {shown(column)}"
                raise BadApplication(
                    f"streams.{self.name}.by", problem, f"write one or more of {known}"
                )
        return replace(self, grouping="key", key=columns)

    def broadcast(self) -> "Stream":
        """Return the stream, read so that every processor gets every record."""
        return replace(self, grouping="broadcast", key=())

    @property
    def plain(self) -> "Stream":
        """The stream as it is written, whoever reads it."""
        return replace(self, grouping="shuffle", key=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A stream that leaves the application, by the name under which it does.

    With *deduplicate* what came twice leaves once, as far back as *window* records.
    """

    name: str
    stream: Stream
    deduplicate: bool = False
    window: int = 100_000

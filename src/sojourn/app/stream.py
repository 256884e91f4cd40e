"""Streams of an application, and how their records are dealt out to processors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sojourn.app.schema import Schema
from sojourn.errors import BadApplication
from sojourn.topology.check import shown

__all__ = ["Grouping", "Sink", "Stream"]

Grouping: TypeAlias = Literal["shuffle", "key", "broadcast"]
"""Any processor gets a record; or any, but one of a key at a time; or all of them."""


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
        """Return the stream, read so that of each key one record is served at a time."""
        return replace(self, grouping="key", key=self._checked("by", columns))

    def broadcast(self, *, latest_by: str | Sequence[str] = ()) -> "Stream":
        """Return the stream, read so that every processor gets every record.

        Those are the processors that run when a record comes. With *latest_by*, one or more
        columns, those that start later get the latest record of each key before any other.
        """
        columns = (latest_by,) if isinstance(latest_by, str) else latest_by
        if columns == ():
            return replace(self, grouping="broadcast", key=())
        return replace(self, grouping="broadcast", key=self._checked("broadcast", columns))

    def _checked(self, way: str, columns: object) -> tuple[str, ...]:
        """Return *columns*, having checked that they can be a key."""
        place = f"streams.{self.name}.{way}"
        binaries = () if self.schema is None else self.schema.binaries
        known = [column for column in self.columns if column not in binaries]
        way_out = f"write one or more of {', '.join(known)}"
        if not isinstance(columns, list | tuple) or not columns:
            raise BadApplication(place, "no columns are named", way_out)
        for column in columns:
            if column in binaries:
                problem = f"{column} is binary, and cannot be a key"
                raise BadApplication(place, problem, way_out)
            if column not in self.columns:
                raise BadApplication(place, f"there is no column {shown(column)}", way_out)
        return tuple(columns)

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

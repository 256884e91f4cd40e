"""Streams of an application: format, and how their records are distributed to processors."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from sojourn.app.schema import Schema
from sojourn.errors import BadApplication
from sojourn.text import shown

__all__ = ["Avro", "Grouping", "Sink", "Stream"]

Grouping: TypeAlias = Literal["shuffle", "key", "broadcast"]
"""A record goes to any processor; to any, but one of each key at a time; or to all."""


@dataclass(frozen=True, slots=True)
class Avro:
    """Records in Avro, with the schema of a *file*, of a *registry*, or of both.

    With a *file* alone messages are Avro's binary encoding and nothing else. With a *registry*
    of Confluent they begin with the id of their schema; new ones get the latest schema of the
    *subject*, or that of the *file*, which is registered. Records wait for a registry that does
    not answer, up to *patience_s*. A relative *file* is in the working directory.

    >>> Avro(registry="http://localhost:8081", subject="clicks-value").subject
    'clicks-value'
    """

    file: str | PathLike[str] = ""
    registry: str = field(default="", kw_only=True, repr=False)  # may have a password
    subject: str = field(default="", kw_only=True)
    patience_s: float = field(default=900.0, kw_only=True)

    def __post_init__(self) -> None:
        if not self.file and not self.registry:
            way_out = (
                'write Avro("clicks.avsc"), or Avro(registry="http://…", subject="clicks")'
            )
            raise BadApplication("format", "Avro has no schema", way_out)
        if bool(self.registry) != bool(self.subject):
            given, other = ("registry", "subject") if self.registry else ("subject", "registry")
            raise BadApplication("format", f"Avro has a {given}, but no {other}", "give both")
        if self.registry and not self.registry.startswith(("http://", "https://")):
            problem = f"{shown(self.registry)} is not the address of a registry"
            raise BadApplication("format", problem, "write http://host:8081")
        if not self.patience_s >= 0:
            problem = f"a patience of {shown(self.patience_s)} s is negative"
            raise BadApplication("format", problem, "write patience_s=0 or more")
        if self.file:  # other processes may have another working directory
            object.__setattr__(self, "file", str(Path(self.file).absolute()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A flow of records, as an operator reads it.

    *schema* is None if only Spark knows the types: a Spark SQL operator writes the stream, and
    its `emits` were not given. Without a *format* records are JSON. A *durable* one is written
    to Kafka between operators, too. *grouping* belongs to the reader: each reader has its own,
    and whether a *key* may be null.

    >>> from sojourn.app.schema import parse_schema
    >>> words = Stream(name="words", columns=("word",), schema=parse_schema("word string"))
    >>> words.by("word").grouping
    'key'
    """

    name: str
    columns: tuple[str, ...]
    schema: Schema | None
    format: Avro | None = None
    durable: bool = False
    grouping: Grouping = "shuffle"
    key: tuple[str, ...] = ()
    null_key: bool = False

    def by(self, *columns: str, nulls: bool = False) -> "Stream":
        """Return the stream, read by key: one record of each key is served at a time.

        A record in which one of the *columns* is null is an error, unless *nulls* are keys too.
        """
        key = self._checked("by", columns)
        return replace(self, grouping="key", key=key, null_key=nulls)

    def broadcast(self, *, latest_by: str | Sequence[str] = ()) -> "Stream":
        """Return the stream, read by broadcast: every processor gets every record.

        These are the processors that run when a record arrives. With *latest_by*, one or more
        columns, a processor that starts later first gets the latest record of each key.
        """
        columns = (latest_by,) if isinstance(latest_by, str) else latest_by
        if columns == ():
            return replace(self, grouping="broadcast", key=())
        return replace(self, grouping="broadcast", key=self._checked("broadcast", columns))

    def _checked(self, way: str, columns: object) -> tuple[str, ...]:
        """Return *columns* after checking that they can be a key."""
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
        """The stream as it is written, without the grouping of a reader."""
        return replace(self, grouping="shuffle", key=(), null_key=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """An output stream of the application, and the name of the output.

    With *deduplicate* each record is written once. Ids that producers gave are compared with
    the last *window*.
    """

    name: str
    stream: Stream
    deduplicate: bool = False
    window: int = 100_000

"""Streams of an application: format, and how their records are distributed to processors."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from sojourn.app.schema import Schema
from sojourn.errors import BadApplication
from sojourn.text import shown

Grouping: TypeAlias = Literal["shuffle", "key", "broadcast"]
"""To any processor; to any, but records of a key one at a time; or to all processors."""


@dataclass(frozen=True, slots=True)
class Avro:
    """The Avro format, with a schema from a *file*, a *registry*, or both.

    With only a *file*, messages are in Avro's plain binary encoding. With a Confluent
    *registry*, they begin with the id of their schema; new messages are written with the latest
    schema of the *subject*, or with that of the *file*, which is then registered.

    >>> Avro(registry="http://localhost:8081", subject="clicks-value").subject
    'clicks-value'
    """

    file: str | PathLike[str] = ""
    """The path of a schema; a relative path starts at the working directory."""
    registry: str = field(default="", kw_only=True, repr=False)  # may have a password
    """The URL of the registry."""
    subject: str = field(default="", kw_only=True)
    patience_s: float = field(default=900.0, kw_only=True)
    """How long records wait while the registry does not answer."""

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
    """A stream, with the grouping of one reader.

    >>> from sojourn.app.schema import parse_schema
    >>> words = Stream(name="words", columns=("word",), schema=parse_schema("word string"))
    >>> words.by("word").grouping
    'key'
    """

    name: str
    columns: tuple[str, ...]
    schema: Schema | None
    """None if only Spark knows the types: a Spark SQL operator without `emits` writes it."""
    format: Avro | None = None
    """None is JSON."""
    durable: bool = False
    """Whether it goes through Kafka between operators."""
    grouping: Grouping = "shuffle"
    """How the reader distributes records to its processors."""
    key: tuple[str, ...] = ()
    """The columns of the reader's key."""
    null_key: bool = False
    """Whether null is a valid key."""

    def by(self, *columns: str, nulls: bool = False) -> "Stream":
        """Return the stream, read by key: records of a key are served one at a time, in order.

        A record with null in one of the *columns* is an error, unless *nulls* is True.
        """
        key = self._checked("by", columns)
        return replace(self, grouping="key", key=key, null_key=nulls)

    def broadcast(self, *, latest_by: str | Sequence[str] = ()) -> "Stream":
        """Return the stream, read by broadcast: every processor gets every record.

        Only processors that run when a record arrives receive it. With *latest_by*, one or more
        columns, a processor that starts later first receives the latest record of each key.
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
        """The stream without the grouping of a reader."""
        return replace(self, grouping="shuffle", key=(), null_key=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """An output of the application."""

    name: str
    stream: Stream
    deduplicate: bool = False
    """Whether each record is written only once."""
    window: int = 100_000
    """How many of the last producer-assigned ids a new id is compared with."""

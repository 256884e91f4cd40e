"""Operators of an application: functions in Python, and Spark SQL expressions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from sojourn.app.state import StateFields
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication
from sojourn.text import shown

__all__ = [
    "TIME_LIMIT_S",
    "AppOperator",
    "Function",
    "Hints",
    "NativeOperator",
    "OnError",
    "PythonOperator",
]

TIME_LIMIT_S = 300.0
"""The default time limit for one record."""

Function: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnError:
    """What happens to a record on which a function raises, or exceeds its time limit.

    It is retried *retries* times. *then* it stops the application, or becomes a dead letter:
    it is stored with the error, and the application continues.
    """

    retries: int = 0
    then: Literal["stop", "dead_letter"] = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Estimates for an operator before it is measured, for plans and simulations.

    *sends* is the mean number of records that it sends to each stream, per record it reads.
    """

    service_s: float | None = None
    service_scv: float = 1.0
    sends: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOperator:
    """What all operators have: a name, streams, bounds."""

    native: ClassVar[bool]

    name: str
    reads: tuple[Stream, ...]
    emits: tuple[Stream, ...]
    min_processors: int = 1
    max_processors: int | None = None
    hints: Hints = Hints()

    def __getitem__(self, stream: str) -> Stream:
        """Return a stream that this operator writes, by its name."""
        for emitted in self.emits:
            if emitted.name == stream:
                return emitted
        raise BadApplication(
            f"operators.{self.name}.emits", f"there is no stream {shown(stream)}", self._names()
        )

    @property
    def stream(self) -> Stream:
        """The only stream that this operator writes."""
        if len(self.emits) != 1:
            raise BadApplication(
                f"operators.{self.name}.emits",
                f"it writes {len(self.emits)} streams, not one",
                self._names(),
            )
        return self.emits[0]

    def by(self, *columns: str, nulls: bool = False) -> Stream:
        """Return its only stream, read by key."""
        return self.stream.by(*columns, nulls=nulls)

    def broadcast(self, *, latest_by: str | Sequence[str] = ()) -> Stream:
        """Return its only stream, read by every processor."""
        return self.stream.broadcast(latest_by=latest_by)

    def _names(self) -> str:
        names = [f"{self.name}[{emitted.name!r}]" for emitted in self.emits]
        return f"write {' or '.join(names)}" if names else "give it emits="


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonOperator(AppOperator):
    """A function over one record.

    It is called with the columns of the record, or if *names_input*, because it reads several
    streams, with the name of the stream and the record. *set_up* is called once per processor,
    and its result comes first; with *record_id* the id of the record comes before its columns.
    It yields records, or if *names_output* pairs of stream and record. If it keeps a *state*,
    that of the record's key comes before the record; it is removed *ttl_s* after its last
    change. With *nulls* it is called for messages without a value too.
    """

    native = False

    function: Function
    set_up: Function | None = None
    names_input: bool = False
    names_output: bool = False
    on_error: OnError = OnError()
    time_limit_s: float = TIME_LIMIT_S
    records_per_transfer: int | None = None
    record_id: bool = False
    nulls: bool = False
    state: StateFields | None = None
    ttl_s: float | None = None

    def __call__(self, *arguments: object) -> object:
        """Call the function itself, as a test would."""
        return self.function(*arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeOperator(AppOperator):
    """Spark SQL expressions by the name of their column.

    A projection emits one record per record; an aggregation keeps one per group, by the
    columns *groups*, in Spark's state.
    """

    native = True

    kind: Literal["project", "aggregate"]
    columns: Mapping[str, str]
    groups: tuple[str, ...] = ()

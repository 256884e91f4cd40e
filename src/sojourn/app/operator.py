"""Operators of an application: functions in Python, and Spark SQL expressions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from sojourn.app.state import StateFields
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication
from sojourn.text import shown

TIME_LIMIT_S = 300.0
"""The default time limit for one record."""

Function: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnError:
    """The policy for a record on which a function raises, or exceeds its time limit."""

    retries: int = 0
    """How often the record is retried."""
    then: Literal["stop", "dead_letter"] = "stop"
    """After the retries: stop the application, or store a dead letter and continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Estimates for an operator before it is measured, for plans and simulations."""

    service_s: float | None = None
    """The mean service time of a record."""
    service_scv: float = 1.0
    """The squared coefficient of variation of the service time."""
    sends: Mapping[str, float] = field(default_factory=dict)
    """The mean number of records sent to each stream, per record read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOperator:
    """The common fields of operators: name, streams and bounds."""

    native: ClassVar[bool]
    """Whether Spark runs the operator itself, without processors."""

    name: str
    reads: tuple[Stream, ...]
    emits: tuple[Stream, ...]
    min_processors: int = 1
    max_processors: int | None = None
    hints: Hints = Hints()

    def __getitem__(self, stream: str) -> Stream:
        """Return the stream of this name that the operator writes."""
        for emitted in self.emits:
            if emitted.name == stream:
                return emitted
        raise BadApplication(
            f"operators.{self.name}.emits", f"there is no stream {shown(stream)}", self._names()
        )

    @property
    def stream(self) -> Stream:
        """The stream it writes. Raise `BadApplication` unless there is exactly one."""
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
    """A Python function that is called once per record.

    Its arguments are, in this order: the result of *set_up*, the state of the key, the id of
    the record, each only if used; and the columns of the record.
    """

    native = False

    function: Function
    set_up: Function | None = None
    """Called once per processor."""
    names_input: bool = False
    """Whether stream and record are passed instead of columns: it reads several streams."""
    names_output: bool = False
    """Whether it yields pairs of stream and record."""
    on_error: OnError = OnError()
    time_limit_s: float = TIME_LIMIT_S
    """The time limit for one record."""
    records_per_transfer: int | None = None
    """The most records that Spark hands to the host together; None is automatic."""
    record_id: bool = False
    """Whether the id of the record is passed."""
    nulls: bool = False
    """Whether it is called for messages without a value."""
    state: StateFields | None = None
    """The fields of the state of each key, if it keeps one."""
    ttl_s: float | None = None
    """The time after its last change at which a state expires; None keeps it forever."""

    def __call__(self, *arguments: object) -> object:
        """Call the function directly, as in a unit test."""
        return self.function(*arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeOperator(AppOperator):
    """A Spark SQL operator.

    A projection emits one record per record; an aggregation keeps one per group in Spark's
    state.
    """

    native = True

    kind: Literal["project", "aggregate"]
    columns: Mapping[str, str]
    """Spark SQL expressions by column."""
    groups: tuple[str, ...] = ()
    """The columns that an aggregation groups by."""

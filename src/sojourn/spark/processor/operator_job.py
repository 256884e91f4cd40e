"""The job that calls the function of an operator."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from inspect import isgeneratorfunction
from typing import Any, cast

import msgspec

from sojourn.app.codec import codec_of
from sojourn.app.loading import load
from sojourn.app.operator import PythonOperator
from sojourn.app.output import output_of
from sojourn.app.parts import parts_of
from sojourn.app.reminder import Reminder, State, reminders_of
from sojourn.app.state import key_fields, key_values
from sojourn.app.stream import Stream
from sojourn.errors import BadInput, BadRecord
from sojourn.spark.processor.processor import Lent
from sojourn.spark.processor.state_codec import StateCodec
from sojourn.spark.wire.processor import OutputRecord
from sojourn.spark.wire.record import Record, Reminded, blobs_bytes

_decode = msgspec.json.Decoder(Reminded).decode


def of_application(argument: str) -> "OperatorJob":
    """Return the job of an operator, given as `package.module:app operator`.

    A topology file, whose path may contain spaces, may take the place of `package.module:app`.
    """
    address, _, name = argument.rpartition(" ")
    if not address:
        raise BadInput(f"{argument!r} has no operator; write package.module:app operator")
    app = load(address)
    operator = app.operators.get(name)
    if not isinstance(operator, PythonOperator):
        raise BadInput(
            f"{address} has no Python operator {name!r}; check the name: native operators run "
            "in Spark"
        )
    part = next(part for part in parts_of(app) if name in part.operators)
    inner = [
        (reader, stream)
        for reader in part.operators
        for stream in app.operators[reader].reads
        if stream.key and stream.name in part.inner
    ]
    return OperatorJob(operator, keyed=inner, in_memory=set(part.inner) - set(part.writes))


def _needed(stream: Stream) -> tuple[tuple[str, int], ...]:
    """Return the key columns that must not be null, and their indexes in a record."""
    if stream.null_key:
        return ()
    return tuple((column, stream.columns.index(column)) for column in stream.key)


def _no_key(stream: str, column: str) -> BadRecord:
    return BadRecord(
        f"{stream}.{column}",
        "is null or missing, but the operator reads by this column; set it, or read with "
        f'.by("{column}", nulls=True) to make null a key',
    )


class OperatorJob:
    """Calls the function of *operator* with the columns of each record.

    Outputs to streams in *keyed* get the keys by which the operator named there reads them.
    The size of outputs to streams *in_memory* is not limited.
    """

    def __init__(
        self,
        operator: PythonOperator,
        *,
        keyed: Iterable[tuple[str, Stream]] = (),
        in_memory: Collection[str] = (),
    ) -> None:
        self._operator, self._checked = operator, output_of(operator)
        # native streams have no schema, and no function reads or writes them
        self._read = {s.name: codec_of(s) for s in operator.reads if s.schema}
        self._written = {s.name: codec_of(s) for s in operator.emits if s.schema}
        self._keys: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for reader, stream in keyed:
            self._keys.setdefault(stream.name, []).append((reader, stream.key))
        self._needed = {s.name: _needed(s) for s in operator.reads if s.grouping == "key"}
        self._in_memory = in_memory
        self._reminders = reminders_of(operator.name)
        self._states = None
        if operator.state is not None:
            self._states = StateCodec(f"operators.{operator.name}.state", operator.state)
        self._before: tuple[object, ...] = ()
        self._opened = ExitStack()

    def set_up(self) -> None:
        """Call the operator's own set-up; its result is the first argument of the function.

        A generator yields that result, and resumes when the processor ends.
        """
        set_up = self._operator.set_up
        if set_up is not None and isgeneratorfunction(set_up):
            self._before = (self._opened.enter_context(contextmanager(set_up)()),)
        elif set_up is not None:
            self._before = (set_up(),)

    def tear_down(self) -> None:
        """Resume a set-up that is a generator."""
        self._opened.close()

    def __call__(self, record: Record, lent: Lent | None = None, /) -> Iterator[OutputRecord]:
        """Yield the outputs of the function, then put its new state into *lent*."""
        # Arguments are collected from last to first: columns, stream, id, state, set-up.
        reminded = None
        if record.stream == self._reminders:
            reminded, arguments = self._called_again(_decode(record.payload))
        else:
            arguments = self._columns(record)
            for column, place in self._needed.get(record.stream, ()):
                if arguments[place] is None:
                    raise _no_key(record.stream, column)
            if self._operator.names_input:
                arguments = (record.stream, arguments)
        if self._operator.record_id:
            arguments = (record.name, *arguments)
        state = None
        if self._states is not None and lent is not None:
            state = State(self._states.decode(lent.state), reminded=reminded)
            arguments = (state, *arguments)
        yielded = cast(
            "Iterable[object] | None", self._operator.function(*self._before, *arguments)
        )
        for output in yielded or ():
            stream, values = self._checked(output)
            payload, blobs = self._written[stream].encode(values)
            if record.room and stream not in self._in_memory:
                self._check_size(stream, len(payload) + blobs_bytes(blobs), record.room)
            keys = {
                reader: self._written[stream].key(payload, columns)
                for reader, columns in self._keys.get(stream, ())
            }
            yield OutputRecord(stream, payload, blobs, keys)
        if self._states is not None and lent is not None and state is not None:
            lent.state = self._states.encode(state)
            lent.reminders = state.reminders

    def _columns(self, record: Record) -> tuple[Any, ...]:
        """Return the columns of a record; a null record has only the columns of its key."""
        if record.payload or not self._operator.nulls:
            return self._read[record.stream].decode(record.payload, record.blobs)
        stream = next(each for each in self._operator.reads if each.name == record.stream)
        named: dict[str, Any] = {}
        if record.key is not None:
            key = key_values(key_fields(stream), record.key)
            named = dict(zip(stream.key, key, strict=True))
        return tuple(named.get(name) for name in stream.columns)

    def _called_again(self, reminded: Reminded) -> tuple[Reminder, tuple[Any, ...]]:
        """Return a reminder and its arguments, in which only the columns of the key are set."""
        stream = self._operator.reads[0]
        key = key_values(key_fields(stream), reminded.key)
        told = Reminder(reminded.note, reminded.due_s)
        if self._operator.names_input:
            return told, (None, key)
        named = dict(zip(stream.key, key, strict=True))
        return told, tuple(named.get(name) for name in stream.columns)

    def _check_size(self, stream: str, size: int, room: int) -> None:
        if size > room:
            raise BadRecord(
                f"operators.{self._operator.name}.emits.{stream}",
                f"a record of {size} bytes is too large: Kafka takes {room} beside "
                "key and headers; send less, or raise max.request.size of the application "
                "and max.message.bytes of the topic",
            )

"""Tests of a whole application without Spark and Kafka: records in, records out.

>>> import sojourn as sj
>>> from sojourn.testing import run
>>> app = sj.App("wordcount")
>>> lines = app.source("lines", schema="line string")
>>> @app.operator(reads=lines, emits="word string")
... def split(line: str):
...     for word in line.split():
...         yield (word,)
>>> @app.operator(reads=split.by("word"), emits="word string, n bigint", state={"n": 0})
... def count(state: dict, word: str):
...     state["n"] += 1
...     yield word, state["n"]
>>> app.sink(count)
>>> run(app, {"lines": [("to be",), ("or not to be",)]})
{'count': [('to', 1), ('be', 1), ('or', 1), ('not', 1), ('to', 2), ('be', 2)]}

Functions run in this process, one record after the other in the order of arrival, with the
codecs, checks and state of an application on Spark. The test controls the time.
"""

import json
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Self

from sojourn.app.application import App
from sojourn.app.codec import codec_of
from sojourn.app.operator import NativeOperator, PythonOperator
from sojourn.app.reminder import reminders_of
from sojourn.app.state import key_fields, key_values
from sojourn.app.type_check import check_record, within
from sojourn.app.writing import key_of_value
from sojourn.errors import ApplicationStopped, BadInput
from sojourn.registry import optional
from sojourn.text import shown

with optional("sojourn.testing needs", "spark"):
    import msgspec

    from sojourn.spark.host.state.reminders import reminder_name
    from sojourn.spark.processor.operator_job import OperatorJob
    from sojourn.spark.processor.processor import Lent, described
    from sojourn.spark.processor.state_codec import StateCodec
    from sojourn.spark.wire.headers import child_identity
    from sojourn.spark.wire.processor import OutputRecord
    from sojourn.spark.wire.record import Record, Reminded


def run(
    app: App, records: Mapping[str, Iterable[tuple[object, ...]]]
) -> dict[str, list[tuple[Any, ...]]]:
    """Return the records that *app* writes to each sink, given the *records* of each source.

    The records of a source are sent in order, one source after the other; with `AppHarness` a
    test can mix sources and advance the time. Raise `ApplicationStopped` if a function raises
    and its operator does not write dead letters.
    """
    with AppHarness(app) as harness:
        for stream, each in records.items():
            harness.send(stream, *each)
        return harness.results


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that an operator could not process."""

    operator: str
    stream: str
    """The stream it was read from; OPERATOR@reminders for a reminder (`state.remind`)."""
    record: tuple[Any, ...]
    """Its columns; of a reminder, its key."""
    error: str
    traceback: str = field(repr=False)
    """The frames of user code."""
    tries: int
    """The number of calls of the function with it."""


@dataclass(slots=True)
class _Kept:
    """The state of a key, and when it last changed."""

    state: bytes = b""
    changed_s: float = 0.0


class AppHarness:
    """Runs an application in this process; a context manager if operators have a set-up.

    *now_s* is the initial time (Unix time). A record from which more than *most_records* derive
    is an error: probably a loop that does not terminate.

    >>> import sojourn as sj
    >>> app = sj.App("alarm")
    >>> beats = app.source("beats", schema="machine string")
    >>> @app.operator(reads=beats.by("machine"), emits="machine string", state={"beats": 0})
    ... def watch(state: sj.State, machine: str):
    ...     if state.reminded is None:
    ...         state["beats"] += 1
    ...         state.remind(after_s=30, note=str(state["beats"]))
    ...     elif state.reminded.note == str(state["beats"]):
    ...         yield (machine,)
    >>> app.sink(watch, name="silent")
    >>> with AppHarness(app) as harness:
    ...     harness.send("beats", ("press",), ("saw",))
    ...     harness.advance(20)
    ...     harness.send("beats", ("saw",))
    ...     harness.advance(20)
    ...     harness.results, harness.state("watch", "saw")
    ({'silent': [('press',)]}, {'beats': 2})
    """

    def __init__(self, app: App, *, now_s: float = 0.0, most_records: int = 1_000_000) -> None:
        app.check()
        self.now_s = now_s
        """The current time, which only `advance` changes."""
        self.results: dict[str, list[tuple[Any, ...]]] = {name: [] for name in app.sinks}
        """The records written to each sink so far."""
        self.dead_letters: list[DeadLetter] = []
        self._app, self._most_records = app, most_records
        self._operators = _python_operators(app)
        self._jobs: dict[str, OperatorJob] = {}
        self._states: dict[tuple[str, str], _Kept] = {}
        self._queue: deque[tuple[PythonOperator, Record]] = deque()
        self._reminders: list[tuple[float, int, PythonOperator, Record]] = []
        self._numbers = count()
        self._sent = dict.fromkeys(app.sources, 0)
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._opened.close()

    def send(self, stream: str, *records: tuple[object, ...]) -> None:
        """Send *records* to a source, in order, and process them and all derived records."""
        source = self._app.sources.get(stream)
        if source is None:
            known = ", ".join(self._app.sources)
            raise BadInput(f"there is no source {shown(stream)}; sources: {known}")
        codec = codec_of(source)
        assert source.schema is not None  # noqa: S101 - a source has one
        check = check_record(source.schema)
        for record in records:
            within(f"sources.{stream}", check, record)
            name = f"{self._app.topic(stream)}/0/{self._sent[stream]}"
            self._sent[stream] += 1
            self._publish(name, OutputRecord(stream, *codec.encode(record)))
            self._process()

    def advance(self, seconds: float) -> None:
        """Advance the time, and deliver the reminders that become due (`state.remind`)."""
        if not 0 <= seconds < inf:
            raise BadInput(f"seconds is {shown(seconds)}; it must not be negative")
        until_s = self.now_s + seconds
        while self._reminders and self._reminders[0][0] <= until_s:
            self.now_s = self._reminders[0][0]
            self._process()
        self.now_s = until_s

    def state(self, operator: str, *key: object) -> dict[str, Any]:
        """Return the state that an operator keeps for *key*, the values of its key columns."""
        found = self._stateful(operator)
        columns = key_fields(found.reads[0])
        if len(key) != len(columns):
            names = ", ".join(str(column) for column in columns)
            raise BadInput(f"the key of {operator} is {names}; {len(key)} values are given")
        parts = [key_of_value(column)(part) for column, part in zip(columns, key, strict=True)]
        return self._decoded(found, self._state(found, json.dumps(parts)))

    def states(self, operator: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return the states of an operator by key, without keys whose state is the defaults."""
        found = self._stateful(operator)
        columns = key_fields(found.reads[0])
        states = {key: self._state(found, key) for of, key in self._states if of == operator}
        return {
            key_values(columns, key): self._decoded(found, state)
            for key, state in states.items()
            if state
        }

    # -- inside ---------------------------------------------------------------------------

    def _stateful(self, operator: str) -> PythonOperator:
        found = self._operators.get(operator)
        if found is None or found.state is None:
            raise BadInput(f"there is no operator {shown(operator)} with a state")
        return found

    @staticmethod
    def _decoded(operator: PythonOperator, state: bytes) -> dict[str, Any]:
        assert operator.state is not None  # noqa: S101 - `_stateful` has checked it
        return StateCodec(f"operators.{operator.name}.state", operator.state).decode(state)

    def _publish(self, name: str, output: OutputRecord) -> None:
        """Queue a record for all operators that read its stream, and write it to its sinks."""
        for sink, into in self._app.sinks.items():
            if into.stream.name == output.stream:
                codec = codec_of(into.stream)
                self.results[sink].append(codec.decode(output.payload, output.blobs))
        for operator in self._operators.values():
            for read in operator.reads:
                if read.name == output.stream:
                    keyed = read.grouping == "key"
                    key = codec_of(read).key(output.payload, read.key) if keyed else None
                    record = Record(name, output.payload, read.name, output.blobs, key)
                    self._queue.append((operator, record))

    def _process(self) -> None:
        for _ in range(self._most_records):
            if self._reminders and self._reminders[0][0] <= self.now_s and not self._queue:
                self._queue.append(heappop(self._reminders)[2:])
            if not self._queue:
                return
            self._serve(*self._queue.popleft())
        raise ApplicationStopped(
            f"one record has produced more than {self._most_records:,} records; check that the "
            "loop terminates"
        )

    def _serve(self, operator: PythonOperator, record: Record) -> None:
        """Call the function, with retries if it raises, and publish its outputs."""
        job, tries = self._job(operator), 0
        while True:
            tries += 1
            kept = b"" if record.key is None else self._state(operator, record.key)
            lent = None if operator.state is None or record.key is None else Lent(kept)
            try:
                outputs = list(job(record, lent))
            except (Exception, SystemExit) as raised:  # user code may raise anything
                if tries <= operator.on_error.retries:
                    continue
                if operator.on_error.then != "dead_letter":
                    error, _ = described(raised)
                    problem = f"{operator.name}: a record failed: {error}"
                    raise ApplicationStopped(problem) from raised
                self._bury(operator, record, raised, tries)
                return
            break
        if lent is not None and record.key is not None:
            if lent.state != kept:
                self._states[operator.name, record.key] = _Kept(lent.state, self.now_s)
            self._remind(operator, record, lent)
        for number, output in enumerate(outputs):
            name = child_identity(record.name, operator.name, number, root=record.name)
            self._publish(name, output)

    def _bury(
        self, operator: PythonOperator, record: Record, raised: BaseException, tries: int
    ) -> None:
        error, traceback = described(raised)
        read = next((each for each in operator.reads if each.name == record.stream), None)
        columns = (
            tuple(json.loads(record.key or "[]"))
            if read is None
            else codec_of(read).decode(record.payload, record.blobs)
        )
        self.dead_letters.append(
            DeadLetter(
                operator=operator.name,
                stream=record.stream,
                record=columns,
                error=error,
                traceback=traceback,
                tries=tries,
            )
        )

    def _remind(self, operator: PythonOperator, record: Record, lent: Lent) -> None:
        stream = reminders_of(operator.name)
        for number, (after_s, note) in enumerate(lent.reminders):
            due_s = self.now_s + after_s
            payload = msgspec.json.encode(Reminded(record.key or "", note, due_s))
            name = reminder_name(stream, record.name, number)
            reminder = Record(name, payload, stream, key=record.key)
            heappush(self._reminders, (due_s, next(self._numbers), operator, reminder))

    def _state(self, operator: PythonOperator, key: str) -> bytes:
        kept = self._states.get((operator.name, key), _Kept())
        lasts_s = inf if operator.ttl_s is None else operator.ttl_s
        return kept.state if kept.changed_s + lasts_s > self.now_s else b""

    def _job(self, operator: PythonOperator) -> OperatorJob:
        if operator.name not in self._jobs:
            job = OperatorJob(operator)
            job.set_up()
            self._opened.callback(job.tear_down)
            self._jobs[operator.name] = job
        return self._jobs[operator.name]


def _python_operators(app: App) -> dict[str, PythonOperator]:
    """Return the operators by name. Raise `BadInput` if some are native."""
    native = [name for name, each in app.operators.items() if isinstance(each, NativeOperator)]
    if native:
        raise BadInput(
            f"{', '.join(native)}: projections and aggregations run only on Spark; test this "
            "application with `sojourn run`, or write them as functions"
        )
    found = app.operators.items()
    return {name: each for name, each in found if isinstance(each, PythonOperator)}

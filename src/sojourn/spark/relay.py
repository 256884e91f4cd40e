"""What runs in a Spark task: records to the host, and what it answers back to Spark.

One thread reads what Spark brings and passes on what the host gives credit for, while the
other yields results as they come, in any order. The relay ends only when every record that
it passed on is answered, or kept for the next batch, and only then Spark commits this one:
nothing is lost.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from sojourn.errors import EngineError
from sojourn.host.messages import (
    Answer,
    Answers,
    Credit,
    End,
    Failed,
    Finished,
    Frames,
    FromFeed,
    Hello,
    Leave,
    PassedBy,
    Record,
    Records,
    Stay,
    ToFeed,
    framed,
)
from sojourn.spark.carry_over import CarryOver, PassedRecord
from sojourn.spark.headers import Lineage
from sojourn.spark.rows import SCHEMA, Route, Rows

__all__ = ["relay"]

_CHUNK = 1 << 16
_PATIENCE_S = 20.0
_LOOK_S = 0.02
# At the end of a batch: what takes no time is done by then.
_LINGERS_S = 0.05
_decode = msgspec.msgpack.Decoder(ToFeed).decode

Batches = Iterable[pa.RecordBatch]


def relay(
    path: str, route: Route, carry_over: CarryOver | None = None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what `mapInArrow` runs: the relay to the host at *path*.

    Without *carry_over*, a batch ends when all of it is done.
    """

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        hello = _hello()
        if carry_over is None:
            yield from _Relay(path, route, hello, stays=True).results(batches)
            return
        before = carry_over.load(hello)
        passing = _Relay(path, route, hello, before)
        yield from passing.results(batches)
        carry_over.save(hello, passing.open)

    return run


def _connected(path: str, operator: str) -> socket.socket:
    """Return the connection to a host, which may have to be started again first."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        host = socket.socket(socket.AF_UNIX)
        try:
            host.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            host.close()
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{operator}: no connection to its host within {_PATIENCE_S:g} s"
                ) from error
            time.sleep(_LOOK_S)
        else:
            return host


class _Relay:
    """One batch of one partition, on its way through a host.

    It begins with what the batch *before* left. When the host dies, what it has not answered
    goes to the one that is started in its place: if the task failed instead, Spark would repeat
    all of the batch. At the end of the batch it leaves what is in service, unless it *stays*.
    """

    def __init__(
        self,
        path: str,
        route: Route,
        hello: Hello,
        before: Iterable[PassedRecord] = (),
        *,
        stays: bool = False,
    ) -> None:
        self._path, self._route, self._hello = path, route, hello
        self._rows = Rows(route)
        self._number = 0
        self._open: dict[int, PassedRecord] = {}
        for lineage, record in before:
            self._pass(lineage, record)
        self._host: socket.socket | None = None
        self._credit, self._changed = 0, threading.Condition()
        self._all_read, self._finished, self._stays = False, False, stays
        self._failure: BaseException | None = None

    @property
    def open(self) -> list[PassedRecord]:
        """What is not answered."""
        return list(self._open.values())

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield what the host answers, until everything is answered, or it is left."""
        threading.Thread(target=self._feed, args=(batches,), daemon=True).start()
        try:
            while not self._finished:
                with _connected(self._path, self._route.operator) as host:
                    self._begin(host)
                    yield from self._answered(host)
        finally:
            with self._changed:
                self._finished = True  # for the other thread too, however it ends
                self._changed.notify()

    def _answered(self, host: socket.socket) -> Iterator[pa.RecordBatch]:
        """Yield what one host answers, until it is finished or gone."""
        for message in _messages(host):
            match message:
                case Credit(number):
                    with self._changed:
                        self._credit += number
                        self._changed.notify()
                case Answers(answers):
                    if (batch := self._batch(answers)) is not None:
                        yield batch
                case Failed(number, reason):
                    lineage, _ = self._open[number]
                    raise EngineError(f"{self._route.operator}: {lineage.identity}: {reason}")
                case Stay():
                    self._stays = True
                case Finished():
                    self._finished = True
                    return

    def _begin(self, host: socket.socket) -> None:
        """Tell a host what is not answered yet."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            records = [record for _, record in self._open.values()]
            goes_on = self._host is not None or bool(records)
            brings = len(records) if goes_on else None
            self._host, self._credit = host, 0
            _send(host, msgspec.structs.replace(self._hello, brings=brings))
            _send(host, Records(records))
            if self._all_read:
                _send(host, End())

    def _feed(self, batches: Batches) -> None:
        """Pass records on, as many as there is credit for."""
        try:
            for batch in batches:
                # empty ones are the markers that let a record through at once
                rows = [row for row in batch.column(0).to_pylist() if row is not None]
                while rows and not self._finished:
                    rows = rows[self._passed_on(rows) :]
                if self._finished:  # the task has failed, and Spark brings all of it again
                    return
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            with self._changed:
                self._failure = error
                if self._host is not None:
                    with suppress(OSError):  # it is gone already
                        self._host.shutdown(socket.SHUT_RDWR)
        else:
            self._end()

    def _end(self) -> None:
        """Say that there is no more, and leave what is still in service after a moment."""
        with self._changed:
            self._all_read = True
            if self._host is not None:
                _send(self._host, End())
        while not self._finished:
            time.sleep(_LINGERS_S)
            with self._changed:
                if self._host is not None and not self._stays:
                    _send(self._host, Leave())

    def _passed_on(self, rows: Sequence[dict[str, Any]]) -> int:
        """Return how many records were sent, once it is one or more, or nobody waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._credit > 0 or self._finished)
            some = 0 if self._finished else min(self._credit, len(rows))
            others, records = [], []
            for row in rows[:some]:
                if self._rows.is_for_another(row):
                    others.append(row)
                else:
                    records.append(self._pass(*self._rows.record(row)))
            # in one step with the records: whoever connects anew sends all that is open
            self._credit -= len(records)
            host = self._host
        if host is not None:
            _send(host, Records(records))
            for row in others:
                stream = self._route.reads[row["topic"]]
                _send(host, PassedBy(stream, row["partition"], row["offset"]))
        return some

    def _pass(self, lineage: Lineage, record: Record) -> Record:
        """Return a record with a number of ours, by which it is answered."""
        self._number += 1
        numbered = msgspec.structs.replace(record, number=self._number)
        self._open[self._number] = lineage, numbered
        return numbered

    def _batch(self, answers: list[Answer]) -> pa.RecordBatch | None:
        rows = [
            row
            for answer in answers
            for row in self._rows.results(self._open.pop(answer.number), answer)
        ]
        return pa.RecordBatch.from_pylist(rows, SCHEMA) if rows else None


def _messages(host: socket.socket) -> Iterator[ToFeed]:
    """Yield what a host says, until it is gone."""
    frames = Frames()
    with suppress(ConnectionError):  # killed, before it had read all of what was sent
        while some := host.recv(_CHUNK):
            yield from map(_decode, frames.fed(some))


def _send(host: socket.socket, message: FromFeed) -> None:
    """Say something to a host; of one that is gone, the thread that reads takes note."""
    with suppress(OSError):
        host.sendall(framed(message))


def _hello() -> Hello:
    """Return which batch of which partition this task has, as Spark tells it."""
    from pyspark import TaskContext  # noqa: PLC0415 - only a Spark task has one

    task = TaskContext.get()
    if task is None:
        return Hello("", 0, 0)
    query = task.getLocalProperty("sql.streaming.queryId") or ""
    batch = int(task.getLocalProperty("streaming.sql.batchId") or 0)
    return Hello(query, task.partitionId(), batch)

"""What runs in a Spark task: records to the host, and what it answers back to Spark.

One thread reads what Spark brings and passes on what the host gives credit for, while the
other yields results as they come, in any order. The relay ends only when every record that
it passed on is answered, and only then Spark commits the batch: nothing is lost.
"""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
    Record,
    Records,
    ToFeed,
    framed,
)
from sojourn.spark.headers import ERROR, Lineage, child_headers, lineage_of
from sojourn.spark.sampling import Sampling

__all__ = ["OUTPUT", "SCHEMA", "Route", "relay"]

OUTPUT = "topic string, value binary, headers array<struct<key: string, value: binary>>"
"""What a relay hands to Spark's Kafka sink."""
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""The same, for Arrow."""

_CHUNK = 1 << 16
_PATIENCE_S = 20.0
_LOOK_S = 0.02
_decode = msgspec.msgpack.Decoder(ToFeed).decode

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an operator's records come from and go to.

    *reads* are streams by the name of the topic, *writes* topics by that of the stream.
    *keys* are the columns by which records of a topic are dealt out, and *everyone* the topics
    whose records all processors get. About *trace_per_s* roots in a second are followed.
    """

    operator: str
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    dead_letters: str
    trace_per_s: float = 100.0
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    everyone: frozenset[str] = frozenset()


def relay(path: str, route: Route) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what `mapInArrow` runs: the relay to the host at *path*."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from _Relay(path, route).results(batches)

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
                raise EngineError(f"{operator}: its host is not there") from error
            time.sleep(_LOOK_S)
        else:
            return host


class _Relay:
    """One batch of one partition, on its way through a host.

    When the host dies, what it has not answered goes to the one that is started in its place:
    if the task failed instead, Spark would repeat all of the batch.
    """

    def __init__(self, path: str, route: Route) -> None:
        self._path, self._route = path, route
        self._sampling = Sampling(route.trace_per_s)
        self._number = 0
        self._open: dict[int, tuple[Lineage, Record]] = {}
        self._again: deque[Record] = deque()
        self._host: socket.socket | None = None
        self._credit, self._changed = 0, threading.Condition()
        self._all_read = False
        self._failure: BaseException | None = None

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield what the host answers, until everything is answered."""
        threading.Thread(target=self._feed, args=(batches,), daemon=True).start()
        hello = _hello()
        while True:
            with _connected(self._path, self._route.operator) as host:
                self._begin(host, hello)
                for message in _messages(host):
                    match message:
                        case Credit(number):
                            self._granted(host, number)
                        case Answers(answers):
                            if (batch := self._batch(answers)) is not None:
                                yield batch
                        case Failed(number, reason):
                            lineage, _ = self._open[number]
                            raise EngineError(
                                f"{self._route.operator}: {lineage.identity}: {reason}"
                            )
                        case Finished():
                            return
            hello = msgspec.structs.replace(hello, resumes=True)

    def _begin(self, host: socket.socket, hello: Hello) -> None:
        """Send again, to a new host, what the last one did not answer."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            self._host, self._credit = host, 0
            self._again = deque(record for _, record in self._open.values())
            _send(host, hello)
            self._end(host)

    def _granted(self, host: socket.socket, number: int) -> None:
        """Use credit: for what is sent again first, and the other thread gets the rest."""
        with self._changed:
            some = [self._again.popleft() for _ in range(min(number, len(self._again)))]
            if some:
                _send(host, Records(some))
                self._end(host)
            self._credit += number - len(some)
            self._changed.notify()

    def _end(self, host: socket.socket) -> None:
        """Say that there is no more, if so."""
        if self._all_read and not self._again:
            _send(host, End())

    def _feed(self, batches: Batches) -> None:
        """Pass records on, as many as there is credit for."""
        try:
            for batch in batches:
                # empty ones are the markers that let a record through at once
                rows = [row for row in batch.column(0).to_pylist() if row is not None]
                while rows:
                    rows = rows[self._passed_on(rows) :]
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            with self._changed:
                self._failure = error
                if self._host is not None:
                    with suppress(OSError):  # it is gone already
                        self._host.shutdown(socket.SHUT_RDWR)
        else:
            with self._changed:
                self._all_read = True
                if self._host is not None:
                    self._end(self._host)

    def _passed_on(self, rows: Sequence[dict[str, Any]]) -> int:
        """Return how many records were sent, once it is one or more."""
        with self._changed:
            self._changed.wait_for(lambda: self._credit > 0)
            some = min(self._credit, len(rows))
            self._credit -= some
            # in one step with the credit: whoever connects anew sends all that is open
            records = [self._record(row) for row in rows[:some]]
            host = self._host
        if host is not None:
            _send(host, Records(records))
        return some

    def _record(self, row: dict[str, Any]) -> Record:
        lineage = lineage_of(
            [(header["key"], header["value"] or b"") for header in row["headers"] or ()],
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            timestamp_s=row["timestamp"].timestamp(),
        )
        if lineage.traced is None:
            lineage = replace(lineage, traced=self._sampling.weight(time.monotonic()))
        payload = row["value"] or b""
        self._number += 1
        record = Record(
            self._number,
            lineage.identity,
            payload,
            stream=self._route.reads[row["topic"]],
            blobs=lineage.blobs,
            key=_key(payload, self._route.keys.get(row["topic"], ())),
            written_s=lineage.written_s,
            everyone=row["topic"] in self._route.everyone,
            root=lineage.root,
            birth_s=lineage.birth_s,
            traced=lineage.traced or 0,
            partition=row["partition"],
            offset=row["offset"],
        )
        self._open[record.number] = lineage, record
        return record

    def _batch(self, answers: list[Answer]) -> pa.RecordBatch | None:
        rows = [row for answer in answers for row in self._rows(answer)]
        return pa.RecordBatch.from_pylist(rows, SCHEMA) if rows else None

    def _rows(self, answer: Answer) -> Iterator[dict[str, object]]:
        lineage, record = self._open.pop(answer.number)
        now_s = time.time()
        if answer.dead:
            headers = child_headers(lineage, self._route.operator, 0, now_s, lineage.blobs)
            reason = (ERROR, answer.dead.encode())
            yield _row(self._route.dead_letters, record.payload, [*headers, reason])
        for place, output in enumerate(answer.outputs):
            headers = child_headers(lineage, self._route.operator, place, now_s, output.blobs)
            yield _row(self._route.writes[output.stream], output.payload, headers)


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


def _key(payload: bytes, columns: tuple[str, ...]) -> str | None:
    """Return what decides on the processor; None where any will do.

    A record that has no such columns fits no processor better than another; that it does not
    fit the schema is said when it is read.
    """
    if not columns:
        return None
    try:
        named = json.loads(payload)
        return json.dumps([named.get(column) for column in columns])
    except (ValueError, AttributeError):
        return None


def _row(topic: str, value: bytes, headers: list[tuple[str, bytes]]) -> dict[str, object]:
    named = [{"key": name, "value": content} for name, content in headers]
    return {"topic": topic, "value": value, "headers": named}


def _hello() -> Hello:
    """Return which batch of which partition this task has, as Spark tells it."""
    from pyspark import TaskContext  # noqa: PLC0415 - only a Spark task has one

    task = TaskContext.get()
    if task is None:
        return Hello("", 0, 0)
    query = task.getLocalProperty("sql.streaming.queryId") or ""
    batch = int(task.getLocalProperty("streaming.sql.batchId") or 0)
    return Hello(query, task.partitionId(), batch)

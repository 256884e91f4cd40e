"""What runs in a Spark task: records to the host, and what it answers back to Spark.

One thread reads what Spark brings and passes on what the host gives credit for, while the
other yields results as they come, in any order. The relay ends only when every record that
it passed on is answered, and only then Spark commits the batch: nothing is lost.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
        with _connected(path, route.operator) as host:
            yield from _Relay(host, route).results(batches)

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
    """One batch of one partition, on its way through a host."""

    def __init__(self, host: socket.socket, route: Route) -> None:
        self._host, self._route = host, route
        self._open: dict[int, tuple[Lineage, bytes]] = {}
        self._sampling = Sampling(route.trace_per_s)
        self._credit, self._changed = 0, threading.Condition()
        self._failure: BaseException | None = None

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield what the host answers, until it has answered everything."""
        self._host.sendall(framed(_hello()))
        threading.Thread(target=self._feed, args=(batches,), daemon=True).start()
        frames = Frames()
        while some := self._host.recv(_CHUNK):
            for body in frames.fed(some):
                match _decode(body):
                    case Credit(number):
                        with self._changed:
                            self._credit += number
                            self._changed.notify()
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
        if self._failure is not None:
            raise self._failure
        raise EngineError(
            f"{self._route.operator}: its host is gone, with records not answered"
        )

    def _feed(self, batches: Batches) -> None:
        """Pass records on, as many as there is credit for."""
        number = 0
        try:
            for batch in batches:
                # empty ones are the markers that let a record through at once
                rows = [row for row in batch.column(0).to_pylist() if row is not None]
                while rows:
                    some = self._credited(len(rows))
                    records = [
                        self._record(number + i, row) for i, row in enumerate(rows[:some])
                    ]
                    self._host.sendall(framed(Records(records)))
                    number, rows = number + some, rows[some:]
            self._host.sendall(framed(End()))
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            self._failure = error
            self._host.shutdown(socket.SHUT_RDWR)

    def _credited(self, most: int) -> int:
        """Return how many records may be sent, once it is one or more."""
        with self._changed:
            self._changed.wait_for(lambda: self._credit > 0)
            some = min(self._credit, most)
            self._credit -= some
        return some

    def _record(self, number: int, row: dict[str, Any]) -> Record:
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
        self._open[number] = lineage, payload
        return Record(
            number,
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

    def _batch(self, answers: list[Answer]) -> pa.RecordBatch | None:
        rows = [row for answer in answers for row in self._rows(answer)]
        return pa.RecordBatch.from_pylist(rows, SCHEMA) if rows else None

    def _rows(self, answer: Answer) -> Iterator[dict[str, object]]:
        lineage, payload = self._open.pop(answer.number)
        now_s = time.time()
        if answer.dead:
            headers = child_headers(lineage, self._route.operator, 0, now_s, lineage.blobs)
            reason = (ERROR, answer.dead.encode())
            yield _row(self._route.dead_letters, payload, [*headers, reason])
        for place, output in enumerate(answer.outputs):
            headers = child_headers(lineage, self._route.operator, place, now_s, output.blobs)
            yield _row(self._route.writes[output.stream], output.payload, headers)


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

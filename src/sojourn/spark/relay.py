"""What runs in a Spark task: records to the host, and what it answers back to Spark.

One thread reads what Spark brings and passes on what the host gives credit for, while the
other yields results as they come, in any order. The relay ends only when every record that
it passed on is answered, or kept for the next batch, and only then Spark commits this one:
nothing is lost.
"""

import json
import socket
import threading
import time
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
    Leave,
    PassedBy,
    Record,
    Records,
    Stay,
    ToFeed,
    framed,
)
from sojourn.host.sizes import MOST_BYTES, message_bytes
from sojourn.spark.carried import Carried, Passed
from sojourn.spark.headers import (
    LATEST_S,
    MOST_TRACED,
    Header,
    Lineage,
    child_headers,
    is_for_another,
    lineage_of,
)
from sojourn.spark.letters import dead_letter
from sojourn.spark.sampling import Sampling

__all__ = ["OUTPUT", "SCHEMA", "Route", "relay"]

OUTPUT = (
    "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
)
"""What a relay hands to Spark's Kafka sink."""
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""The same, for Arrow."""

_CHUNK = 1 << 16
_PATIENCE_S = 20.0
_LOOK_S = 0.02
# At the end of a batch: what takes no time is done by then.
_LINGERS_S = 0.05
# Numbers that are as long as any in the headers of a child.
_MOST_OUTPUTS, _LONGEST = 10**9, 1 / 3e300
_decode = msgspec.msgpack.Decoder(ToFeed).decode

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an operator's records come from and go to.

    *reads* are streams by the name of the topic, *writes* topics by that of the stream.
    *keys* are the columns by which records of a topic are dealt out, and *everyone* the topics
    whose records all processors get. About *trace_per_s* roots in a second are followed. No
    message is larger than *most_bytes*. Ids of roots carry *marks*, by topic.
    """

    operator: str
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    dead_letters: str
    trace_per_s: float = 100.0
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    everyone: frozenset[str] = frozenset()
    most_bytes: int = MOST_BYTES
    marks: Mapping[str, str] = field(default_factory=dict)


def relay(
    path: str, route: Route, carried: Carried | None = None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what `mapInArrow` runs: the relay to the host at *path*.

    Without a place for what is *carried* over, a batch ends when all of it is done.
    """

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        hello = _hello()
        if carried is None:
            yield from _Relay(path, route, hello, stays=True).results(batches)
            return
        before = carried.taken(hello)
        passing = _Relay(path, route, hello, before)
        yield from passing.results(batches)
        carried.leave(hello, passing.open)

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

    It begins with what the batch *before* left. When the host dies, what it has not answered
    goes to the one that is started in its place: if the task failed instead, Spark would repeat
    all of the batch. At the end of the batch it leaves what is in service, unless it *stays*.
    """

    def __init__(
        self,
        path: str,
        route: Route,
        hello: Hello,
        before: Iterable[Passed] = (),
        *,
        stays: bool = False,
    ) -> None:
        self._path, self._route, self._hello = path, route, hello
        self._sampling = Sampling(route.trace_per_s)
        self._room_bytes = route.most_bytes - _beside_bytes(route.operator)
        self._number = 0
        self._open: dict[int, Passed] = {}
        for lineage, record in before:
            self._pass(lineage, record)
        self._host: socket.socket | None = None
        self._credit, self._changed = 0, threading.Condition()
        self._all_read, self._finished, self._stays = False, False, stays
        self._failure: BaseException | None = None

    @property
    def open(self) -> list[Passed]:
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
            others = [row for row in rows[:some] if self._is_for_another(row)]
            ours = [row for row in rows[:some] if not self._is_for_another(row)]
            self._credit -= len(ours)
            # in one step with the credit: whoever connects anew sends all that is open
            records = [self._record(row) for row in ours]
            host = self._host
        if host is not None:
            _send(host, Records(records))
            for row in others:
                stream = self._route.reads[row["topic"]]
                _send(host, PassedBy(stream, row["partition"], row["offset"]))
        return some

    def _is_for_another(self, row: dict[str, Any]) -> bool:
        return is_for_another(row["headers"], self._route.dead_letters, self._route.operator)

    def _record(self, row: dict[str, Any]) -> Record:
        lineage = lineage_of(
            [(header["key"], header["value"]) for header in row["headers"] or ()],
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            timestamp_s=_moment_s(row["timestamp_us"]),
            key=row["key"],
            mark=self._route.marks.get(row["topic"], ""),
        )
        if lineage.traced is None:
            lineage = replace(lineage, traced=self._sampling.weight(time.monotonic()))
        payload = row["value"] or b""
        record = Record(
            0,
            lineage.place,  # two records of strangers may have the same id
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
            room=self._room(lineage),
            name=lineage.identity,
        )
        return self._pass(lineage, record)

    def _room(self, lineage: Lineage) -> int:
        """Return how many bytes a child may have, beside the key and headers that it gets."""
        ids = len(lineage.identity.encode()) + len(lineage.root.encode())
        return max(1, self._room_bytes - ids - len(lineage.key or b""))

    def _pass(self, lineage: Lineage, record: Record) -> Record:
        """Return a record with a number of ours, by which it is answered."""
        self._number += 1
        numbered = msgspec.structs.replace(record, number=self._number)
        self._open[self._number] = lineage, numbered
        return numbered

    def _batch(self, answers: list[Answer]) -> pa.RecordBatch | None:
        rows = [row for answer in answers for row in self._rows(answer)]
        return pa.RecordBatch.from_pylist(rows, SCHEMA) if rows else None

    def _rows(self, answer: Answer) -> Iterator[dict[str, object]]:
        lineage, record = self._open.pop(answer.number)
        now_s, operator = time.time(), self._route.operator
        for place, output in enumerate(answer.outputs):
            headers = child_headers(lineage, operator, place, now_s, output.blobs)
            yield _row(self._route.writes[output.stream], lineage.key, output.payload, headers)
        if answer.dead:
            letter = dead_letter(
                lineage,
                record,
                answer,
                operator=operator,
                now_s=now_s,
                most_bytes=self._route.most_bytes,
            )
            yield _row(self._route.dead_letters, letter.key, letter.value, letter.headers)


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
    except (ValueError, AttributeError, RecursionError):  # deeply nested, too
        return None


def _beside_bytes(operator: str) -> int:
    """Return what a message has at most beside payload, key and the ids of its parents."""
    nobody = Lineage(
        identity="", root="", birth_s=_LONGEST, written_s=0.0, blobs={}, traced=MOST_TRACED
    )
    headers = child_headers(nobody, operator, _MOST_OUTPUTS, _LONGEST, {})
    return message_bytes(None, b"", headers)


def _moment_s(timestamp_us: int | None) -> float:
    """Return when a message was written, or now where its writer's clock cannot be right."""
    if timestamp_us is None or not 0 <= timestamp_us <= LATEST_S * 1e6:
        return time.time()
    return timestamp_us / 1e6


def _row(
    topic: str, key: bytes | None, value: bytes | None, headers: list[Header]
) -> dict[str, object]:
    named = [{"key": name, "value": content} for name, content in headers]
    return {"topic": topic, "key": key, "value": value, "headers": named}


def _hello() -> Hello:
    """Return which batch of which partition this task has, as Spark tells it."""
    from pyspark import TaskContext  # noqa: PLC0415 - only a Spark task has one

    task = TaskContext.get()
    if task is None:
        return Hello("", 0, 0)
    query = task.getLocalProperty("sql.streaming.queryId") or ""
    batch = int(task.getLocalProperty("streaming.sql.batchId") or 0)
    return Hello(query, task.partitionId(), batch)

"""The relay in a Spark task: sends records to the host of a part, and its results to Spark.

One thread reads records from Spark and sends them to the host, within the credit that the host
grants, while the other yields results as they arrive. A third sends heartbeats, because the
other two may wait for Spark indefinitely. The relay ends when the host says so: then every
record that was sent is done and its results have left, or it is in a cut on disk. Only then
does Spark commit the batch. If the host dies, the relay fails too, and the batch is retried.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from sojourn.app.codec.schema_registry import outlast
from sojourn.errors import EngineError, RegistryAway
from sojourn.spark.task.rows import SCHEMA, Route, Rows, end_row
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.processor import Waits
from sojourn.spark.wire.record import Partition
from sojourn.spark.wire.relay import (
    AllRead,
    Ends,
    Failed,
    Finished,
    FromRelay,
    Grant,
    Heartbeat,
    RelayHello,
    Results,
    Row,
    RowsMessage,
    ToRelay,
)

_CHUNK = 1 << 16
_PATIENCE_S = 20.0
_LOOK_S = 0.02
_HEARTBEAT_S = 1.0
_decode = msgspec.msgpack.Decoder(ToRelay).decode

_Batches = Iterable[pa.RecordBatch]


def relay(
    address: HostAddress,
    route: Route,
    batch_s: float,
    ends: str = "",
    *,
    patience_s: float = _PATIENCE_S,
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`: the relay to the host at *address*.

    A host that restarts must accept a connection within *patience_s*. When a batch has lasted
    *batch_s*, the records that Spark has read are sent without credit. Java learns the end
    offsets of partitions under the name *ends*, unless it is empty.
    """

    def run(batches: _Batches) -> Iterator[pa.RecordBatch]:
        with _connected(address, route.part, patience_s) as host:
            yield from _Relay(host, route, batch_s, ends).results(batches)

    return run


def _connected(address: HostAddress, part: str, patience_s: float) -> socket.socket:
    """Connect to a host, and retry while it restarts."""
    until_s = time.monotonic() + patience_s
    while True:
        try:
            return address.connect()
        except (OSError, EngineError) as error:
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{part}: no connection to its host within {patience_s:g} s: {error}"
                ) from error
            time.sleep(_LOOK_S)


class _Relay:
    """One task of one batch, and its connection to the host."""

    def __init__(self, host: socket.socket, route: Route, batch_s: float, ends: str) -> None:
        self._host, self._part = host, route.part
        self._made = lambda: Rows(route)
        self._ends_s = time.monotonic() + batch_s
        self._credit, self._changed = 0, threading.Condition()
        self._ended = False
        self._ends, self._told = ends, dict[Partition, int]()
        self._last: dict[Partition, int] = {}
        self._failure: BaseException | None = None
        self._sending, self._over = threading.Lock(), threading.Event()

    def results(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        """Yield results until the host lets this task end."""
        self._send(_hello())
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        try:
            self._rows = outlast(self._made, self._waits)
            threading.Thread(target=self._pass_on, args=(batches,), daemon=True).start()
            yield from self._left()
        finally:
            self._over.set()
            with self._changed:
                self._ended = True  # for the other thread too, however it ends
                self._changed.notify()

    def _left(self) -> Iterator[pa.RecordBatch]:
        for message in _messages(self._host):
            match message:
                case Grant(number):
                    with self._changed:
                        self._credit += number
                        self._changed.notify()
                case Results():
                    yield pa.RecordBatch.from_pylist(self._rows.left(message), SCHEMA)
                case Ends(ends):
                    if rows := [end_row(self._ends, *each) for each in self._untold(ends)]:
                        yield pa.RecordBatch.from_pylist(rows, SCHEMA)
                case Failed(reason):
                    raise EngineError(f"{self._part}: {reason}")
                case Finished():
                    return
        if self._failure is not None:
            raise self._failure
        raise EngineError(f"{self._part}: the connection to its host is lost")

    def _untold(self, ends: list[tuple[Partition, int]]) -> list[tuple[Partition, int]]:
        """Return new end offsets of partitions that this task reads, not yet sent to Java."""
        if not self._ends:
            return []
        new = {
            place: end
            for place, end in ends
            if place in self._last and self._told.get(place) != end
        }
        self._told |= new
        return list(new.items())

    def _beat(self) -> None:
        while not self._over.wait(_HEARTBEAT_S):
            self._send(Heartbeat())

    def _send(self, message: FromRelay) -> None:
        """Send a message; the thread that reads finds out if the connection is lost."""
        with self._sending, suppress(OSError):
            self._host.sendall(framed(message))

    def _pass_on(self, batches: _Batches) -> None:
        """Send records to the host, within its credit."""
        try:
            for batch in batches:
                # null rows are markers that flush records through Spark immediately
                rows = [row for row in batch.column(0).to_pylist() if row is not None]
                while rows:
                    rows = rows[self._passed_on(rows) :]
                    if self._ended:  # the task has failed, and Spark retries the batch
                        return
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            self._failure = error
            with suppress(OSError):  # already closed
                self._host.shutdown(socket.SHUT_RDWR)
        else:
            self._send(AllRead())

    def _passed_on(self, rows: list[dict[str, Any]]) -> int:
        """Send rows as soon as there is credit; return how many, 0 if the task has ended.

        At the end of a batch all are sent: Spark commits the offsets that its reader returned.
        """
        with self._changed:
            left_s = max(0.0, self._ends_s - time.monotonic())
            self._changed.wait_for(lambda: self._credit > 0 or self._ended, timeout=left_s)
            if self._ended:
                return 0
            # without credit the batch is over, and all rows are sent
            some = min(self._credit, len(rows)) or len(rows)
            self._credit = max(0, self._credit - some)
        came = [self._came(row) for row in rows[:some]]
        for row in came:
            self._check_order(row)
        self._send(RowsMessage(came))
        return some

    def _came(self, row: dict[str, Any]) -> Row:
        """Return the message for a row, waiting for the schema registry if necessary."""
        try:
            return self._rows.came(row)
        except RegistryAway:
            return outlast(lambda: self._rows.came(row), self._waits)

    def _waits(self, reason: str) -> None:
        """Send the host the reason of a delay. Raise `EngineError` if the task has ended."""
        if self._ended:
            raise EngineError(f"{self._part}: its task has ended")
        with self._sending:
            self._host.sendall(framed(Waits(reason)))

    def _check_order(self, row: Row) -> None:
        """Raise `EngineError` if a query of the user's own reordered or repeated offsets."""
        if row.offset <= self._last.get(row.partition, -1):
            topic, partition = row.partition
            raise EngineError(
                f"{self._part}: offset {row.offset} of {topic}[{partition}] came after "
                f"{self._last[row.partition]}; a part needs one row for each offset, in order"
            )
        self._last[row.partition] = row.offset


def _messages(host: socket.socket) -> Iterator[ToRelay]:
    """Yield the messages of a host until the connection ends."""
    frames = Frames()
    with suppress(ConnectionError):  # the host was killed before it had read everything
        while some := host.recv(_CHUNK):
            yield from map(_decode, frames.fed(some))


def _hello() -> RelayHello:
    """Return run, batch and task from Spark's context."""
    from pyspark import TaskContext  # noqa: PLC0415 - only a Spark task has one

    task = TaskContext.get()
    if task is None:
        return RelayHello("", 0, 0, 0)
    run = task.getLocalProperty("spark.jobGroup.id") or ""
    batch = int(task.getLocalProperty("streaming.sql.batchId") or 0)
    query = task.getLocalProperty("sql.streaming.queryId") or ""
    return RelayHello(run, batch, task.stageId(), task.partitionId(), query)

"""Starts the queries and hosts of a running application, and restarts them when they fail."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.driver.disk_watch import DiskWatch, lacks_room
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.kafka.offsets import Standing
from sojourn.spark.driver.restarts import NodeLosses, Restarts
from sojourn.spark.wire.host_settings import HostSettings

_LOOK_S = 0.05
# A broken connection to Java is replaced at the next call; if Java is gone, every call fails.
_TRIES = 3
# The user is notified after this many attempts at one batch were lost with nodes.
_OFTEN = 3
_NO_BROKER, _NO_ROOM = "brokers did not answer", "the disk was full"
_OUTAGES = (_NO_BROKER, _NO_ROOM)


@dataclass(slots=True)
class _Part:
    """A query or a host, with the state of its restarts."""

    start: Callable[[], None]
    at: Callable[[], int | None] = lambda: None
    """Returns the batch that a query is at."""
    restarts: Restarts = field(default_factory=Restarts)
    again_at_s: float | None = None
    """The time of the next start; None while it runs."""


class QuerySupervisor:
    """Watches the queries and hosts of an application, in a thread of its own.

    A query or host that ends is restarted after a delay. *failed* receives the reason, once,
    if one fails too often or a record stops the application; *log* receives each failure.

    Failures with an external cause do not count towards the limit. While *broker* is away no
    query is restarted, and its failures do not count until the broker has been well for a
    while. The same holds while *disk* has no room. A failure does not count either if the loss
    of a node explains it.

    *wanted* returns the current settings of a host to restart, *batch* the number of the batch
    that a query is at. The thread looks every *look_s*.
    """

    def __init__(  # noqa: PLR0913 - what others know of it, each by its name
        self,
        controller: Controller,
        hosts: Mapping[str, HostSettings],
        starts: Mapping[str, Callable[[], StreamingQuery]],
        *,
        wanted: Callable[[str], HostSettings],
        batch: Callable[[str], int],
        failed: Callable[[str], None],
        broker: Callable[[], Standing] = lambda: "well",
        disk: DiskWatch | None = None,
        log: Callable[[str], None] = lambda _line: None,
        look_s: float = _LOOK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_s, self._clock = look_s, clock
        self._controller, self._wanted, self._failed = controller, wanted, failed
        self._starts, self._broker, self._log = dict(starts), broker, log
        self._losses = NodeLosses()
        self.disk = DiskWatch(()) if disk is None else disk
        self._queries: dict[str, StreamingQuery] = {}
        self._without_room: dict[str, StreamingQuery] = {}  # failed because of a full disk
        self._hosts = {name: _Part(partial(self._launch, name)) for name in hosts}
        self._parts = {
            name: _Part(partial(self._start, name), partial(batch, name)) for name in starts
        }
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def restarts(self) -> dict[str, int]:
        """The number of restarts of queries and their hosts, by query."""
        return {
            name: part.restarts.number
            + (self._hosts[name].restarts.number if name in self._hosts else 0)
            for name, part in self._parts.items()
        }

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for users: queries whose batch fails again and again with lost nodes."""
        told = []
        for name, part in self._parts.items():
            times, at = part.restarts.excused
            if times >= _OFTEN and at == part.at():
                told.append(
                    f"{name}: batch {at} failed {_OFTEN} times or more because a node was lost"
                    "; it runs again, and shorter batches (--batch) lose less"
                )
        return tuple(told)

    def start(self) -> None:
        for part in self._parts.values():
            part.start()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        for query in self._queries.values():
            with suppress(Exception):  # Java may be gone, and the others must be stopped too
                query.stop()

    def _launch(self, name: str) -> None:
        self._controller.launch(self._wanted(name))

    def _start(self, name: str) -> None:
        self._queries[name] = self._starts[name]()

    def _run(self) -> None:
        failures = 0
        while not self._ended.wait(self._look_s):
            try:
                if not self._all_looked_after():
                    return
                failures = 0
            except Exception as error:  # noqa: BLE001 - any error may mean that Java is gone
                failures += 1
                if failures == _TRIES and not self._ended.is_set():
                    self._failed(f"Spark does not answer: {type(error).__name__}: {error}")
                    return

    def _all_looked_after(self) -> bool:
        """Restart queries and hosts that have ended; False if the application must stop."""
        for operator, reason in self._controller.stopped().items():
            self._failed(f"{operator}: {reason}")
            return False
        self.disk.look()
        now_s, ended, broker = self._clock(), self._controller.ended(), self._broker()
        # a batch may fail before the loss of its node is noticed: excuse that in retrospect
        if (since_s := self._losses.saw(self._controller.lost_nodes())) is not None:
            for part in self._parts.values():
                part.restarts.forgive(since_s)
        excuse = f"{lost} was lost" if (lost := self._losses.lately(now_s)) else ""
        if broker != "well":
            excuse = excuse or _NO_BROKER
        hosts = (
            self._looked_after(name, part, ended.get(name), now_s)
            for name, part in self._hosts.items()
        )
        # while a broker or disk space is missing, a restarted query would only fail again
        queries = (
            broker == "away"
            or self.disk.full_s is not None
            or self._looked_after(name, part, why, now_s, self._no_room(name) or excuse)
            for name, part in self._parts.items()
            for why in (self._why_ended(name),)
        )
        return all(hosts) and all(queries)

    def _looked_after(
        self, name: str, part: _Part, why: str | None, now_s: float, excuse: str = ""
    ) -> bool:
        """Restart a part that has ended, once its delay is over; False after too many failures.

        *why* is the reason of its end, None while it runs. With an *excuse*, the external cause
        of the failure, it does not count.
        """
        if why is None:
            return True
        if part.again_at_s is None:
            at = part.at()
            delay_s = (
                part.restarts.excused_delay_s(now_s, None if excuse in _OUTAGES else at)
                if excuse
                else part.restarts.delay_s(now_s, at)
            )
            self._log(_failure(name, at, why, excuse, again=delay_s is not None))
            if delay_s is None:
                self._failed(f"{name} {part.restarts.why}: {why}")
                return False
            part.again_at_s = now_s + delay_s
        if now_s >= part.again_at_s:
            part.again_at_s = None
            part.start()
        return True

    def _why_ended(self, name: str) -> str | None:
        query = self._queries[name]
        if query.isActive:
            return None
        error = query.exception()
        if error is None:
            return "it ended without an error"
        why = _cause(error)
        if self._without_room.get(name) is not query and lacks_room(str(error)):
            self._without_room[name] = query
            self.disk.lacks(why)
        return why

    def _no_room(self, name: str) -> str:
        """Return the excuse if a full disk has ended the query, else an empty text."""
        return _NO_ROOM if self._without_room.get(name) is self._queries[name] else ""


def _failure(name: str, at: int | None, why: str, excuse: str, *, again: bool) -> str:
    """Return the log line of a failure.

    >>> _failure("split", 7, "no host", "node-1 was lost", again=True)
    'split failed at batch 7, and is restarted; not counted, because node-1 was lost: no host'
    """
    batch = "" if at is None else f" at batch {at}"
    then = "is restarted" if again else "is not restarted"
    uncounted = f"; not counted, because {excuse}" if excuse else ""
    return f"{name} failed{batch}, and {then}{uncounted}: {why}"


def _cause(error: StreamingQueryException) -> str:
    """Return the line of an error that names its cause; Spark wraps it in many others."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    for line in reversed(told):
        if "EngineError" in line:
            return line
    return next(iter(told or lines), "Spark gives no reason")

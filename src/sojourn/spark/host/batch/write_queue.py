"""What a host writes, and what waits while the disk is full.

One thread writes cuts and states, one at a time, in order. The order makes a cut complete: it
names files of earlier cuts, which are on disk before it. A write for which there is no room is
retried, and the others wait behind it. While the log has no room, events wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sojourn.errors import DiskFull, EngineError, SojournError
from sojourn.spark.wire.event_loop import report

# Seconds between retries, so that a batch ends soon after there is room.
_AGAIN_S = 0.25


class Room:
    """The disk space that one kind of write of a host needs.

    *log* gets a line when the disk is full, and one when there is room again. *now_s* is a
    monotonic clock.
    """

    def __init__(
        self, patience_s: float, now_s: Callable[[], float], log: Callable[[str], None]
    ) -> None:
        self._patience_s, self._now_s, self._log = patience_s, now_s, log
        self._since_s: float | None = None
        self._closed = asyncio.Event()
        self.lack = ""
        """The error while the disk is full; else empty."""

    def lacks(self, error: DiskFull) -> None:
        """Record that the disk is full. Raise `EngineError` if it has been for too long."""
        self.lack = str(error)
        now_s = self._now_s()
        if self._since_s is None:
            self._since_s = now_s
            self._log(f"{error}; the host waits up to {self._patience_s:g} s for disk space")
        elif now_s - self._since_s > self._patience_s:
            raise EngineError(f"no disk space after {self._patience_s:g} s: {error}")

    def found(self) -> None:
        """Record that there is room, if there was none."""
        if self._since_s is not None:
            after_s = self._now_s() - self._since_s
            self._log(f"disk space is available again after {after_s:.1f} s; the host resumes")
            self._since_s, self.lack = None, ""

    async def wait(self) -> None:
        """Wait until the next retry, or until `close`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), _AGAIN_S)

    def close(self) -> None:
        """Wake up all that wait, now and later."""
        self._closed.set()


@dataclass(frozen=True, slots=True)
class _Write:
    what: str
    write: Callable[[], None]
    then: Callable[[], None]


class WriteQueue:
    """Writes that wait, and the current one.

    If a write fails, *failed* gets the reason, and nothing is written any more.
    """

    def __init__(self, failed: Callable[[str], None], room: Room) -> None:
        self._failed, self._room = failed, room
        self._waiting: deque[_Write] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._closed = False

    def put(self, what: str, write: Callable[[], None], then: Callable[[], None]) -> None:
        """Call *write* in a thread after all writes before it, and *then* in the event loop."""
        if self._closed:
            return
        self._waiting.append(_Write(what, write, then))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def close(self) -> None:
        """Drop all writes that wait, and return when the current one has ended."""
        self._closed = True
        self._waiting.clear()
        self._room.close()
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        while self._waiting:
            one = self._waiting.popleft()
            try:
                await self._written(one)
                if not self._closed:
                    one.then()
            except Exception as error:  # noqa: BLE001 - this task is not awaited
                self._closed = True
                self._waiting.clear()
                if isinstance(error, SojournError):
                    self._failed(f"{one.what}: {error}")
                else:
                    report(error)
        self._writing = None

    async def _written(self, one: _Write) -> None:
        """Write, with retries while the disk is full, or until the queue is closed."""
        while True:
            try:
                await asyncio.to_thread(one.write)
            except DiskFull as error:
                self._room.lacks(error)
                await self._room.wait()
                if self._closed:
                    return
            else:
                self._room.found()
                return


class HeldEvents:
    """Events that wait until *write*, which writes the rest of the log, finds *room*.

    No decision may have an effect before it is logged. So while the disk is full, the last
    decision is carried out once it is written, and later events are decided only then.
    """

    def __init__(self, write: Callable[[], None], room: Room) -> None:
        self._write, self._room = write, room
        self._events: deque[Callable[[], None]] = deque()
        self.waiting = False

    def put(self, event: Callable[[], None]) -> None:
        """Run an event: now, or after all events that wait.

        An event that raises `DiskFull` has changed nothing, and is retried.
        """
        self._events.append(event)
        self._happen()

    def put_next(self, event: Callable[[], None]) -> None:
        """Run an event: now, or directly after the one that was just held."""
        if self.waiting:
            self._events.insert(1, event)
        else:
            event()

    def hold(self, error: DiskFull, then: Callable[[], None]) -> None:
        """Hold all events until there is room, and run *then* first.

        Raise `EngineError` if the disk has been full for too long.
        """
        self._room.lacks(error)
        self.waiting = True
        self._events.appendleft(then)

    def retry(self) -> None:
        """Retry the write; if there is room, run all events that wait.

        Raise `EngineError` if the disk has been full for too long.
        """
        try:
            self._write()
        except DiskFull as error:
            self._room.lacks(error)
            return
        self.waiting = False
        self._happen()
        if not self.waiting:
            self._room.found()

    def _happen(self) -> None:
        while self._events and not self.waiting:
            event = self._events.popleft()
            try:
                event()
            except DiskFull as error:
                self.hold(error, event)

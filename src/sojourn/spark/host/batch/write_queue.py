"""Background writes of a host: one thread writes them, one at a time, in order.

Order is what makes a cut complete: it names files of earlier cuts, and these are on disk once
it is. A write for which there is no room is tried again, and the others wait behind it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sojourn.errors import DiskFull, EngineError, SojournError
from sojourn.spark.wire.background import report

__all__ = ["Room", "WriteQueue"]

# How often to try again: often enough for a batch to end soon after there is room.
_AGAIN_S = 0.25


class Room:
    """The room that one kind of write of a host needs.

    *log* gets a line when there is none, and one when there is room again. *now_s* is a steady
    clock.
    """

    def __init__(
        self, patience_s: float, now_s: Callable[[], float], log: Callable[[str], None]
    ) -> None:
        self._patience_s, self._now_s, self._log = patience_s, now_s, log
        self._since_s: float | None = None
        self._closed = asyncio.Event()
        self.lack = ""

    def lacks(self, error: DiskFull) -> None:
        """Note that there is none. Raise `EngineError` if that has been so for too long."""
        self.lack = str(error)
        now_s = self._now_s()
        if self._since_s is None:
            self._since_s = now_s
            self._log(f"{error}; the host waits up to {self._patience_s:g} s for disk space")
        elif now_s - self._since_s > self._patience_s:
            raise EngineError(f"no disk space after {self._patience_s:g} s: {error}")

    def found(self) -> None:
        """Note that there is room, if there was none."""
        if self._since_s is not None:
            after_s = self._now_s() - self._since_s
            self._log(f"disk space is available again after {after_s:.1f} s; the host resumes")
            self._since_s, self.lack = None, ""

    async def wait(self) -> None:
        """Return when it is time to try again, or nobody waits any more."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), _AGAIN_S)

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed.set()


@dataclass(frozen=True, slots=True)
class _Write:
    what: str
    write: Callable[[], None]
    then: Callable[[], None]


class WriteQueue:
    """Writes that wait, and the one under way; *failed* gets the reason if one fails.

    After a failure nothing is written any more. *room* knows how long to wait for room.
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
        """Drop what waits, and return when the write under way has ended."""
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
            except Exception as error:  # noqa: BLE001 - nobody awaits this
                self._closed = True
                self._waiting.clear()
                if isinstance(error, SojournError):
                    self._failed(f"{one.what}: {error}")
                else:
                    report(error)
        self._writing = None

    async def _written(self, one: _Write) -> None:
        """Return when it is written, or nothing is any more."""
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

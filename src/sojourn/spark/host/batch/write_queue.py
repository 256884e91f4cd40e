"""Background writes of a host: one thread writes them, one at a time, in order.

Order is what makes a cut complete: it names files of earlier cuts, and these are on disk once
it is. A write for which there is no room is tried again, and the others wait behind it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sojourn.errors import DiskFull, SojournError
from sojourn.spark.host.batch.room import Room
from sojourn.spark.wire.background import report

__all__ = ["WriteQueue"]


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

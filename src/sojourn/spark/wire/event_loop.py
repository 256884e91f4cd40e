"""The event loop of hosts and agents: connections to processes here, tasks and timers.

Errors reach the event loop's handler immediately. By default asyncio only closes the connection
whose callback raised, and reports a failed task when it is garbage-collected. Both are too late
for a host, which must end immediately.
"""

import asyncio
from collections.abc import Callable, Coroutine
from time import time
from typing import cast

from sojourn.spark.wire.frames import Frames

OURS = "sojourn"
"""The key that marks an exception context made by `report`."""
_CHUNK = 1 << 16


def report(error: Exception) -> None:
    """Pass an unhandled error to the event loop's exception handler."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "unhandled error", "exception": error, OURS: True}
    )


class BackgroundTasks:
    """Tasks that are not awaited; they run until they end or are cancelled together."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(_reporting(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # a task that is cancelled before its first step never closes its coroutine
        task.add_done_callback(lambda _: work.close())

    def cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()


async def _reporting(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the task is not awaited
        report(error)


class Alarm:
    """A timer that calls *due* at a time of *clock*; it can be set again."""

    def __init__(self, due: Callable[[], None], clock: Callable[[], float] = time) -> None:
        self._due, self._clock = due, clock
        self._set: tuple[float, asyncio.TimerHandle] | None = None

    def set(self, due_s: float | None) -> None:
        """Replace the time of the call; a time in the past is immediate, None cancels it."""
        if self._set is not None:
            if self._set[0] == due_s:
                return
            self._set[1].cancel()
            self._set = None
        if due_s is not None:
            loop = asyncio.get_running_loop()
            self._set = due_s, loop.call_later(max(0.0, due_s - self._clock()), self._rings)

    def _rings(self) -> None:
        self._set = None
        self._due()


class FrameConnection(asyncio.BufferedProtocol):
    """Calls *heard* with all frames that arrived together, until the connection is *closed*.

    It is faster than an asyncio stream, which wakes up a task in another turn of the event loop
    and may allocate a new buffer for each read.
    """

    def __init__(self, heard: Callable[[list[bytes]], None]) -> None:
        self._heard, self._frames = heard, Frames()
        self._buffer = memoryview(bytearray(_CHUNK))
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)

    def is_closing(self) -> bool:
        """Return whether it is closed, closing or not open yet."""
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Close the connection once all buffered data is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately, and drop buffered data."""
        if self._transport is not None:
            self._transport.abort()

    def unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # -- callbacks of the event loop --------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer  # used again for each read

    def buffer_updated(self, nbytes: int) -> None:
        if bodies := self._frames.fed(self._buffer[:nbytes]):
            try:
                self._heard(bodies)
            except Exception as error:  # noqa: BLE001 - asyncio would only close the connection
                report(error)
                self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self.closed.done():
            self.closed.set_result(None)

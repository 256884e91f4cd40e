"""Background tasks and timers whose errors reach the event loop's handler immediately.

By default asyncio only closes the connection whose callback raised, and reports a failed task
when it is garbage-collected. Both are too late for a host, which must end immediately.
"""

import asyncio
from collections.abc import Callable, Coroutine
from time import time

__all__ = ["OURS", "Alarm", "BackgroundTasks", "report"]

OURS = "sojourn"
"""The key that marks an exception context made by `report`."""


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
        """Start *work* as a task."""
        task = asyncio.create_task(_reporting(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # a task that is cancelled before its first step never closes its coroutine
        task.add_done_callback(lambda _: work.close())

    def cancel(self) -> None:
        """Cancel all running tasks."""
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

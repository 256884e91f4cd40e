"""Work in the event loop that nobody awaits: what it raises reaches the loop's handler at once.

asyncio by itself closes the connection whose callback raised, or reports a task that failed
when the garbage collector finds it. Both are too late for a host, which must end at once.
"""

import asyncio
from collections.abc import Callable, Coroutine
from time import time

__all__ = ["OURS", "Alarm", "BackgroundTasks", "report"]

OURS = "sojourn"
"""The key of a context that `report` has made."""


def report(error: Exception) -> None:
    """Tell the event loop's exception handler of an error that nobody handles."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "unhandled error", "exception": error, OURS: True}
    )


class BackgroundTasks:
    """Tasks that run until they end by themselves, or all are cancelled."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Begin to run *work*."""
        task = asyncio.create_task(_reporting(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # if it was cancelled before it began

    def cancel(self) -> None:
        """Cancel all that run."""
        for task in list(self._tasks):
            task.cancel()


async def _reporting(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - nobody else would see it
        report(error)


class Alarm:
    """Calls *due* when it is time by the *clock*."""

    def __init__(self, due: Callable[[], None], clock: Callable[[], float] = time) -> None:
        self._due, self._clock = due, clock
        self._set: tuple[float, asyncio.TimerHandle] | None = None

    def set(self, due_s: float | None) -> None:
        """Call at *due_s*, at once if that is over, instead of when it was set to before."""
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

"""A call at a time of some clock, which may be changed until then."""

import asyncio
from collections.abc import Callable
from time import time

__all__ = ["Alarm"]


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

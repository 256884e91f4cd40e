"""Room on the disk of a host: how long there was none, and how long to wait for it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sojourn.errors import DiskFull, EngineError

__all__ = ["Room"]

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

"""Whether a run goes on: it may have failed, be stopped, or be drained."""

import threading

from sojourn.errors import ApplicationStopped

__all__ = ["RunEnd"]


class RunEnd:
    """How a run ends, told by whoever finds out and asked by all who wait.

    >>> end = RunEnd()
    >>> end.check()
    >>> end.fail("the disk is full")
    >>> end.wait(60.0)
    Traceback (most recent call last):
    sojourn.errors.ApplicationStopped: the disk is full
    """

    def __init__(self) -> None:
        self.failure = ""
        self.draining = False
        self._stopping = threading.Event()

    def fail(self, reason: str) -> None:
        """End it for a *reason*."""
        self.failure = reason
        self._stopping.set()

    def stop(self) -> None:
        """End it, as somebody wishes: nobody waits any longer."""
        self._stopping.set()

    def wait(self, seconds: float) -> None:
        """Wait, unless it ends before. Raise `ApplicationStopped` if it failed."""
        self._stopping.wait(max(0.0, seconds))
        self.check()

    def check(self) -> None:
        """Raise `ApplicationStopped` if it failed."""
        if self.failure:
            raise ApplicationStopped(self.failure)

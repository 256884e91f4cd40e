"""The end of a run: it may fail, be stopped or be drained."""

import threading

from sojourn.errors import ApplicationStopped

__all__ = ["RunEnd"]


class RunEnd:
    """The end of a run, shared by the threads that may cause it and those that wait.

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
        """End the run with a failure."""
        self.failure = reason
        self._stopping.set()

    def stop(self) -> None:
        """End the run without a failure; all waits return."""
        self._stopping.set()

    def wait(self, seconds: float) -> None:
        """Wait, at most until the run ends. Raise `ApplicationStopped` if it failed."""
        self._stopping.wait(max(0.0, seconds))
        self.check()

    def check(self) -> None:
        """Raise `ApplicationStopped` if the run has failed."""
        if self.failure:
            raise ApplicationStopped(self.failure)

"""The request to start an application: its settings, its first plan, the end of its run."""

import threading
from dataclasses import dataclass

from sojourn.decide.plan import Plan
from sojourn.engine import Progress
from sojourn.errors import ApplicationStopped
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.wire.handshake import RunIdentity


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
        if self.failure:
            raise ApplicationStopped(self.failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    layout: Layout
    settings: SparkSettings
    plan: Plan
    """The first placement of processors."""
    identity: RunIdentity | None
    """The key and certificate that encrypt connections between machines, if any."""
    end: RunEnd
    """Receives failures of the run."""
    progress: Progress
    """Receives the steps of the start."""
    patience_s: float = 120.0
    """The longest wait for nodes, for processors, and for relays before the start fails."""

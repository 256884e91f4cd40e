"""Removes executors that do not answer before Spark does so by itself.

Spark lists an executor whose machine has vanished for another half a minute, and schedules
tasks of a retried batch on it.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

__all__ = ["SilentExecutors", "remove_executor"]

_WHY = "its agent does not answer"


class SilentExecutors:
    """Calls *remove* once for each silent executor, in a thread of its own.

    >>> removed = []
    >>> silent = SilentExecutors(removed.append)
    >>> for _ in range(2):
    ...     silent.look({"executor-1": 3.0}, {"executor-1": "1", "executor-2": "2"})
    >>> silent.join()
    >>> removed
    ['1']
    """

    def __init__(self, remove: Callable[[str], None]) -> None:
        self._remove = remove
        self._seen: dict[str, float] = {}
        self._threads: list[threading.Thread] = []

    def look(self, silent_s: Mapping[str, float], executor_of: Mapping[str, str]) -> None:
        """Remove the executors of nodes that fell silent since the last look."""
        new = [name for name, at_s in silent_s.items() if self._seen.get(name) != at_s]
        self._seen |= silent_s
        for name in new:
            if name in executor_of:
                thread = threading.Thread(
                    target=self._remove, args=(executor_of[name],), daemon=True
                )
                thread.start()
                self._threads.append(thread)
        self._threads = [each for each in self._threads if each.is_alive()]

    def join(self) -> None:
        """Wait for all removals under way."""
        for thread in self._threads:
            thread.join()


def remove_executor(session: SparkSession, name: str) -> None:
    """Remove an executor from Spark, and ask the cluster to kill and replace it.

    Spark takes the same steps when heartbeats of an executor are missing. If they fail here,
    Spark repeats them later.
    """
    context = session.sparkContext
    java: Any = context._jsc.sc()  # noqa: SLF001 - Python has no such call
    jvm: Any = context._jvm  # noqa: SLF001
    with suppress(Py4JError):
        java.killAndReplaceExecutor(name)
        nobody, by_application = jvm.scala.Option.empty(), False
        lost = jvm.org.apache.spark.scheduler.ExecutorProcessLost(_WHY, nobody, by_application)
        java.schedulerBackend().removeExecutor(name, lost)

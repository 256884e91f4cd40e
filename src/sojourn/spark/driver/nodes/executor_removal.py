"""Executors that do not answer, given up before Spark does so by itself.

Spark lists an executor whose machine has vanished for another half a minute, and sends tasks of
a batch that runs again to it.
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
    """Has executors removed by *remove*, each once, in threads of their own.

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
        """Have the executors of nodes removed that fell silent since the last look."""
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
        """Wait until all that was begun is done."""
        for thread in self._threads:
            thread.join()


def remove_executor(session: SparkSession, name: str) -> None:
    """Let Spark do without an executor, and ask the cluster to end it and start another.

    These are the steps that Spark takes itself when heartbeats of an executor stay out. If they
    fail, it does so later.
    """
    context = session.sparkContext
    java: Any = context._jsc.sc()  # noqa: SLF001 - Python has no such call
    jvm: Any = context._jvm  # noqa: SLF001
    with suppress(Py4JError):
        java.killAndReplaceExecutor(name)
        nobody, by_application = jvm.scala.Option.empty(), False
        lost = jvm.org.apache.spark.scheduler.ExecutorProcessLost(_WHY, nobody, by_application)
        java.schedulerBackend().removeExecutor(name, lost)

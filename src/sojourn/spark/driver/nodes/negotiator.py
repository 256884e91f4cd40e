"""Requests executors of Spark, gives them back, and removes those that do not answer.

Spark lists an executor whose machine has vanished for another half a minute, and schedules
tasks of a retried batch on it.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from sojourn.errors import EngineError
from sojourn.spark.driver.nodes.executors import executors

__all__ = ["SilentExecutors", "SparkNegotiator", "remove_executor"]

_DECOMMISSIONING = "spark.decommission.enabled"
_WHY = "its agent does not answer"


class SparkNegotiator:
    """The executors of *session*, which must have `spark.decommission.enabled`.

    Before the first request, the registered executors are wanted. An executor that is given
    back receives no new tasks and leaves when its running tasks end, that is, with the batch;
    killing it would fail the batch.
    """

    def __init__(self, session: SparkSession) -> None:
        if session.conf.get(_DECOMMISSIONING, "false") != "true":
            raise EngineError(
                "executors cannot be released without failing a batch; set "
                f"{_DECOMMISSIONING} to true in the session"
            )
        self._session = session
        self._lock = threading.Lock()
        self._asked: int | None = None
        self._given_back: set[str] = set()

    @property
    def wanted(self) -> int:
        """The number of executors to have: requested ones without those given back."""
        with self._lock:
            return self._wanted()

    def ask(self, number: int) -> None:
        """Ask Spark for *number* executors in all. Idempotent."""
        with self._lock:
            wanted = self._wanted()
            if number < wanted:
                raise EngineError(
                    f"{number} nodes are fewer than the {wanted} wanted; name those to release"
                )
            if number != self._asked:
                self._request(number)

    def give_back(self, names: Collection[str]) -> None:
        """Decommission these executors, without replacement. Idempotent."""
        with self._lock:
            going = sorted(set(names) - self._given_back)
            if not going:
                return
            there = {each.id for each in executors(self._session)} - self._given_back
            if unknown := [name for name in going if name not in there]:
                raise EngineError(f"there is no executor {', '.join(unknown)} to release")
            wanted = self._wanted()
            # lower first: Spark replaces an executor that leaves while more are wanted
            self._request(wanted - len(going))
            left = set(self._decommission(going))
            self._given_back |= left
            if refused := [name for name in going if name not in left]:
                self._request(wanted - len(left))
                raise EngineError(
                    f"Spark refused to decommission executor {', '.join(refused)}"
                )

    def _wanted(self) -> int:
        if self._asked is not None:
            return self._asked
        return len(executors(self._session))

    def _request(self, number: int) -> None:
        jvm: Any = self._session.sparkContext._jvm  # noqa: SLF001 - Python has no such call
        # the preferred locations of tasks: none
        nowhere = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        try:
            accepted = self._context.requestTotalExecutors(number, 0, nowhere)
        except Py4JError as error:
            raise EngineError(f"Spark failed to ask for {number} executors: {error}") from error
        if not accepted:
            raise EngineError(
                f"the cluster did not accept a request for {number} executors; "
                "is it a local master?"
            )
        self._asked = number

    def _decommission(self, names: Sequence[str]) -> tuple[str, ...]:
        """Decommission executors; return those for which Spark accepts it."""
        context = self._session.sparkContext
        jvm, gateway = context._jvm, context._gateway  # type: Any, Any  # noqa: SLF001
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo
        pairs = gateway.new_array(jvm.scala.Tuple2, len(names))
        for place, name in enumerate(names):
            told = info("released by Sojourn", jvm.scala.Option.empty())
            pairs[place] = jvm.scala.Tuple2(name, told)
        # we lower the total ourselves: without a request before, Spark would set it to 0
        adjust_total, by_executor = False, False
        backend = self._context.schedulerBackend()
        try:
            left = backend.decommissionExecutors(pairs, adjust_total, by_executor)
        except Py4JError as error:
            raise EngineError(f"Spark failed to decommission executors: {error}") from error
        return tuple(name for name in left.mkString(",").split(",") if name)

    @property
    def _context(self) -> Any:  # noqa: ANN401 - of Java
        return self._session.sparkContext._jsc.sc()  # noqa: SLF001


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

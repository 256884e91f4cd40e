"""The executors of a session, and functions that run on one of them."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

import psutil
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD, SparkContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession

from sojourn.errors import EngineError

T = TypeVar("T")

_LOOK_S = 0.05
# Between two attempts: Spark itself has waited for the executor (`spark.locality.wait`).
_PAUSE_S = 0.2
# The last line of a traceback: the name of an error and its message.
_ERROR_LINE = re.compile(r"^[A-Za-z_][\w.]*: .")
# The id that Spark gives to the only executor of a `local` master.
_DRIVER = "driver"
# Standalone, YARN and Kubernetes all start executors with this option.
_OPTION = "--executor-id"
_SPARK = "org.apache.spark."


@dataclass(frozen=True, slots=True)
class Executor:
    id: str
    host: str
    cores: int
    """Its slots for tasks."""
    tasks: int = field(default=0, compare=False)
    """The tasks that were running when it was listed."""


@dataclass(frozen=True, slots=True)
class ExecutorProcess:
    """The id of an executor, and the process id of its JVM."""

    id: str
    pid: int


@dataclass(frozen=True, slots=True)
class _Ran(Generic[T]):
    """The result of a visit, or the problem because of which there is none."""

    where: str
    """The id of the executor on which Spark ran the task."""
    result: T | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Visit(Generic[T]):
    """Calls *function* in a task if the task runs on the executor with this *id*.

    It never raises: a failed task would fail the job, and Spark would log pages of it.
    """

    id: str
    function: Callable[[], T]

    def __call__(self, _rows: Iterable[object]) -> Iterator[_Ran[T]]:
        where = ""
        try:
            where = executor_process().id
            if where != self.id:
                yield _Ran(where)
            else:
                yield _Ran(where, self.function())
        except EngineError as error:
            yield _Ran(where or self.id, problem=str(error))
        except Exception as error:  # noqa: BLE001 - it is raised on the driver
            yield _Ran(where or self.id, problem=f"{type(error).__name__}: {error}")


def executors(session: SparkSession) -> tuple[Executor, ...]:
    """Return the executors that are registered; a `local` master has none.

    A new executor is left out until Spark's listeners have received its event.
    """
    context: Any = session.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no such call
    registered = set(context.getExecutorIds().mkString(",").split(",")) - {"", _DRIVER}
    if not registered:
        return ()
    listed, found = context.statusStore().executorList(True), list[Executor]()
    for place in range(listed.size()):
        summary = listed.apply(place)
        if (name := summary.id()) in registered:
            host = summary.hostPort().rpartition(":")[0]
            found.append(Executor(name, host, summary.totalCores(), summary.activeTasks()))
    return tuple(sorted(found, key=lambda each: (len(each.id), each.id)))


def executor_process() -> ExecutorProcess:
    """Return the executor of this task: the closest JVM of Spark above this process.

    Raise `EngineError` if there is none, as outside of a task.
    """
    for process in psutil.Process().parents():
        try:
            command = process.cmdline()
        except psutil.Error:  # it has ended, or belongs to another user
            continue
        if (found := _executor_id(command)) is not None:
            return ExecutorProcess(found, process.pid)
    raise EngineError("this process does not run in a task of Spark: no JVM has started it")


def _executor_id(command: Sequence[str]) -> str | None:
    """Return the id of the executor that a command line starts; None if it is not Spark's.

    >>> main = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
    >>> _executor_id(["java", "-cp", "jars", main, "--executor-id", "3", "--cores", "2"])
    '3'
    >>> _executor_id(["java", "-cp", "jars", "org.apache.spark.deploy.SparkSubmit"])
    'driver'
    >>> _executor_id(["python", "-m", "pyspark.daemon"])
    """
    if not any(argument.startswith(_SPARK) for argument in command):
        return None
    after = command[command.index(_OPTION) + 1 :] if _OPTION in command else ()
    return after[0] if after else _DRIVER


def on_executor(
    session: SparkSession,
    executor: Executor,
    function: Callable[[], T],
    patience_s: float,
    stopping: threading.Event | None = None,
) -> T:
    """Return the result of *function*, called in one task on *executor*.

    The function and its result must be picklable. Spark prefers the executor while it waits
    for locality, and may then choose another: there the task does nothing, and is retried.
    The job has a group of its own, and needs one free slot.

    Raise `EngineError`, with the executor and the reason, if the function raises, cannot be
    imported there, or does not run there within *patience_s*; or once *stopping* is set.
    """
    stopping = stopping or threading.Event()
    reason, until_s = "it has no free slot", time.monotonic() + patience_s
    while time.monotonic() < until_s and not stopping.is_set():
        if executor.id not in {each.id for each in executors(session)}:
            raise _failed(executor, "it is no longer registered")
        ran = _visited(session.sparkContext, executor, function, until_s, stopping)
        if isinstance(ran, _Ran):
            if ran.problem:
                raise _failed(executor, ran.problem)
            if ran.where == executor.id:
                return cast("T", ran.result)
            reason = f"it had no free slot, and Spark chose executor {ran.where}"
        elif ran is not None:
            if told := _python_error(str(ran)):
                raise _failed(executor, told)
            reason = str(ran).partition("\n")[0]
        stopping.wait(_PAUSE_S)
    if stopping.is_set():
        raise _failed(executor, "the application stops")
    raise _failed(executor, f"no task ran there within {patience_s:g} s: {reason}")


def _python_error(text: str) -> str:
    r"""Return the Python error in Spark's message about a failed task; empty if it has none.

    >>> told = "Traceback (most recent call last):\n  File …\nImportError: no shop\n\n\tat java"
    >>> _python_error(f"Job aborted: {told}")
    'ImportError: no shop'
    >>> _python_error("Job aborted: ExecutorLostFailure (executor 1 exited)")
    ''
    """
    _, _, traceback = text.partition("Traceback (most recent call last):\n")
    lines = traceback.partition("\n\tat ")[0].splitlines()
    return next((line for line in reversed(lines) if _ERROR_LINE.match(line)), "")


def _visited(
    context: SparkContext,
    executor: Executor,
    function: Callable[[], T],
    until_s: float,
    stopping: threading.Event,
) -> _Ran[T] | Py4JError | None:
    """Run a Spark job of one task; return its outcome, None if it was cancelled.

    It is cancelled when it is late, or *stopping*. Job groups belong to threads: in a thread of
    its own, the job leaves that of the caller alone.
    """
    group, outcome = f"sojourn-node-{uuid4().hex}", list[_Ran[T] | Py4JError]()

    def run() -> None:
        try:
            context.setJobGroup(group, f"Sojourn on executor {executor.id}")
            visit = _Visit(executor.id, function)
            outcome.extend(_rdd_at(context, executor).mapPartitions(visit).collect())
        except Py4JError as error:
            outcome.append(error)
        except Exception as error:  # noqa: BLE001 - for example, it cannot be pickled
            problem = f"{type(error).__name__}: {error}"
            outcome.append(_Ran(executor.id, problem=problem))

    thread = threading.Thread(target=run, name=f"visit of executor {executor.id}", daemon=True)
    thread.start()
    while thread.is_alive() and not stopping.is_set() and time.monotonic() <= until_s:
        thread.join(_LOOK_S)
    if thread.is_alive():
        context.cancelJobGroup(group)
        return None
    return outcome[0]


def _rdd_at(context: SparkContext, executor: Executor) -> "RDD[Any]":
    """Return an RDD of one row in one partition, which prefers *executor*.

    Python has no call for preferred locations, so Java creates the RDD. `executor_HOST_ID` is
    Spark's notation for a location in an executor, as opposed to one on a host.
    """
    jvm: Any = context._jvm  # noqa: SLF001
    serializer = CPickleSerializer()
    places, rows = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    places.add(f"executor_{executor.host}_{executor.id}")
    to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    row = bytearray(serializer.dumps(None))  # type: ignore[no-untyped-call]
    rows.add(jvm.scala.Tuple2(row, to_seq(places)))
    java: Any = context._jsc  # noqa: SLF001
    any_class = java.emptyRDD().classTag()
    return RDD(java.sc().makeRDD(to_seq(rows), any_class).toJavaRDD(), context, serializer)


def _failed(executor: Executor, reason: str) -> EngineError:
    return EngineError(f"executor {executor.id} on {executor.host}: {reason}")

"""In a task: the executor that it runs on, and the process of its JVM."""

from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from sojourn.errors import EngineError

__all__ = ["DRIVER", "ExecutorProcess", "executor_id", "executor_process"]

DRIVER = "driver"
"""The id that Spark gives to the only executor of a `local` master."""

# Standalone, YARN and Kubernetes all start executors with this option.
_OPTION = "--executor-id"
_SPARK = "org.apache.spark."


@dataclass(frozen=True, slots=True)
class ExecutorProcess:
    """The id of an executor, and the process id of its JVM."""

    id: str
    pid: int


def executor_process() -> ExecutorProcess:
    """Return the executor of this task: the closest JVM of Spark above this process.

    Raise `EngineError` if there is none, as outside of a task.
    """
    for process in psutil.Process().parents():
        try:
            command = process.cmdline()
        except psutil.Error:  # it has ended, or belongs to another user
            continue
        if (found := executor_id(command)) is not None:
            return ExecutorProcess(found, process.pid)
    raise EngineError("this process does not run in a task of Spark: no JVM has started it")


def executor_id(command: Sequence[str]) -> str | None:
    """Return the id of the executor that a command line starts; None if it is not Spark's.

    >>> main = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
    >>> executor_id(["java", "-cp", "jars", main, "--executor-id", "3", "--cores", "2"])
    '3'
    >>> executor_id(["java", "-cp", "jars", "org.apache.spark.deploy.SparkSubmit"])
    'driver'
    >>> executor_id(["python", "-m", "pyspark.daemon"])
    """
    if not any(argument.startswith(_SPARK) for argument in command):
        return None
    after = command[command.index(_OPTION) + 1 :] if _OPTION in command else ()
    return after[0] if after else DRIVER

"""A Spark session in which Python operators stream record by record."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sojourn.errors import EngineError
from sojourn.files.private_files import PRIVATE_UMASK, append_to, make_folder
from sojourn.spark.driver.jvm.jars import Jars
from sojourn.spark.driver.master import Master

__all__ = ["end_session", "new_session", "remove_with_java", "tasks_of"]

_GRACE_S = 20.0


def new_session(  # noqa: PLR0913 - most are optional
    name: str,
    *,
    jars: Jars,
    slots: int,
    master: Master | None = None,
    options: Mapping[str, str] | None = None,
    log: Path | None = None,
    inherits: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session on this machine with *slots* tasks at once, or on a cluster of *master*.

    Every task of a query holds a slot for as long as it runs; a cluster has as many as its
    executors have cores. What Java and its Python workers print goes to the file *log*, if
    there is one; then Java *inherits* these open files. Executors have the variables of
    *environment*, which may be secret. Raise `EngineError` if this process has a session.
    """
    master = master or Master()
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - nothing else tells
        raise EngineError("this process already has a Spark session; stop it first")
    # workers must run the same Python, with the same packages
    python = master.spark.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"] = python, sys.executable
    settings = {
        "spark.app.name": name,
        "spark.jars": ",".join(map(str, jars.spark)),
        **master.options(slots, options or {}),
    }
    conf = SparkConf().setAll(list(settings.items()))
    if log is not None and SparkContext._gateway is None:  # noqa: SLF001
        make_folder(log.parent)
        with append_to(log) as out:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf,
                {
                    "stdout": out,
                    "stderr": out,
                    "pass_fds": tuple(inherits),
                    "umask": PRIVATE_UMASK,  # logs and what workers in Python write
                },
            )
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001
    # not before: what Java is started with is on its command line
    conf.setAll([(f"spark.executorEnv.{k}", v) for k, v in (environment or {}).items()])
    interrupted = signal.getsignal(signal.SIGINT)
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # Spark would cancel what runs at Ctrl-C, which is for the application to handle
        signal.signal(signal.SIGINT, interrupted)
    session.sparkContext.setLogLevel("ERROR")
    for file in master.py_files:
        session.sparkContext.addPyFile(str(file))
    return session


def remove_with_java(session: SparkSession, folder: Path) -> None:
    """Let *folder* be removed when Java ends, be it because this process was killed."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001
    jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(
        jvm.java.io.File(str(folder))
    )


def tasks_of(session: SparkSession, stage: int) -> int | None:
    """Return how many tasks a stage has; None of one that Spark has not heard of yet."""
    told = session.sparkContext.statusTracker().getStageInfo(stage)
    return None if told is None else int(told.numTasks)


def end_session(session: SparkSession) -> None:
    """Stop *session*, and Java with it: the next one may want another log.

    Java may have ended before. A service manager sends SIGTERM to every process of a service.
    """
    gateway = SparkContext._gateway  # noqa: SLF001
    with suppress(Py4JError, OSError):
        session.stop()
    # if Java does not answer, PySpark leaves these as they were
    SparkSession._instantiatedSession = SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    if gateway is None:
        return
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()  # at which it ends
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

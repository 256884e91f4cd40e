"""Start and end of the Spark session, and of its Java process."""

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
    """Return a session on this machine with *slots* task slots, or on the cluster of *master*.

    Each task of a query occupies a slot while it runs; a cluster has one per core of its
    executors. Java and its Python workers print to the file *log*, if it is given; Java then
    keeps the file descriptors *inherits* open. Executors get the variables of *environment*,
    which may be secret. Raise `EngineError` if this process already has a session.
    """
    master = master or Master()
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - no public API
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
                    "umask": PRIVATE_UMASK,  # for logs and files of Python workers
                },
            )
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001
    # only now: settings from before the launch would show on Java's command line
    conf.setAll([(f"spark.executorEnv.{k}", v) for k, v in (environment or {}).items()])
    interrupted = signal.getsignal(signal.SIGINT)
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # PySpark's handler cancels all jobs at Ctrl-C; the application handles it instead
        signal.signal(signal.SIGINT, interrupted)
    session.sparkContext.setLogLevel("ERROR")
    for file in master.py_files:
        session.sparkContext.addPyFile(str(file))
    return session


def remove_with_java(session: SparkSession, folder: Path) -> None:
    """Register *folder* to be removed when Java ends, even if this process is killed."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001
    jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(
        jvm.java.io.File(str(folder))
    )


def tasks_of(session: SparkSession, stage: int) -> int | None:
    """Return the number of tasks of a stage; None if Spark does not know the stage."""
    told = session.sparkContext.statusTracker().getStageInfo(stage)
    return None if told is None else int(told.numTasks)


def end_session(session: SparkSession) -> None:
    """Stop *session* and its Java process, because the next session may need another log.

    Java may have ended already: a service manager sends SIGTERM to every process of a service.
    """
    gateway = SparkContext._gateway  # noqa: SLF001
    with suppress(Py4JError, OSError):
        session.stop()
    # PySpark does not reset these if Java does not answer
    SparkSession._instantiatedSession = SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    if gateway is None:
        return
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()  # Java exits at the end of its standard input
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""The start of an agent on an executor.

An agent is a process that a Spark task starts on its executor, and that outlives the task.
The handshake between the two:

- The agent reads its settings, a JSON object, from its standard input, a pipe, until the task
  closes it. They hold a secret, so they are never in arguments, the environment or a log.
- The agent writes one line to its standard output, another pipe: `ready`, or `failed: ` and
  the reason. The task reads no further and closes the pipe, so the agent must not write again.
- The agent's standard error is the file `agent.log` in the working folder of the executor.

The task adds two settings: `executor`, the id, and `watch`, the process id of the executor's
JVM. The agent ends when that process is gone.
"""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psutil
from pyspark.sql import SparkSession

from sojourn.app.loading import import_path
from sojourn.errors import EngineError
from sojourn.spark.agent.agent import OWN_LOG
from sojourn.spark.driver.nodes.executors import Executor, executor_process, on_executor

Start: TypeAlias = Callable[[Executor, threading.Event], None]
"""Starts the agent of an executor; gives up when the event is set."""

_MODULE = "sojourn.spark.agent"
_GRACE_S = 5.0
_LOOK_S = 0.01
# Forks the agent and exits, so that init adopts and reaps it, and no worker of Spark has to.
# The agent leads a session of its own, because Spark kills its Python workers as a group.
_LAUNCHER = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
os.write(int(sys.argv[1]), str(os.getpid()).encode())
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    os.write(1, f"failed: {sys.argv[2]} cannot be run: {error.strerror}\\n".encode())
    os._exit(1)
"""
# The `ready` or `failed` line is short: longer output is something else.
_MOST_LINE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """The command that starts an agent, and its settings."""

    settings: Mapping[str, object] = field(repr=False)
    """Sent to the agent as JSON; they contain the secret of the run."""
    command: Sequence[str] = ()
    """Program and arguments; empty for `sojourn.spark.agent` in the Python of the task."""
    patience_s: float = 60.0
    """The longest time until the agent must be ready."""


def agent_starts(session: SparkSession, agent: AgentCommand) -> Start:
    """Return a function that starts *agent* on an executor of *session*."""

    def start(executor: Executor, stopping: threading.Event) -> None:
        # longer than the task waits, so that the task can still return its reason to fail
        patience_s = agent.patience_s + 10.0
        # pickled by the name of the function, not by its code
        on_executor(session, executor, partial(start_agent, agent), patience_s, stopping)

    return start


def start_agent(agent: AgentCommand, folder: Path | None = None) -> int:
    """In a task: start the agent of this executor, and return its process id when it is ready.

    The agent holds a lock on a file in the working folder, so an executor never has two. If one
    is running already, because the driver did not learn of its start, return that one. Raise
    `EngineError` with the reason, from the agent or its log, if it does not become ready.
    """
    executor = executor_process()
    folder = folder or Path.cwd()
    lock = folder / f"agent-{executor.id}.lock"
    with lock.open("a+b") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _running(lock)
        held.truncate(0)
        told = {**agent.settings, "executor": executor.id, "watch": executor.pid}
        command = agent.command or [sys.executable, "-m", _MODULE]
        with _begun(command, folder, held.fileno()) as launcher:
            try:
                _tell(launcher, json.dumps(told).encode())
                _await_ready(launcher, agent.patience_s, folder / OWN_LOG)
            except BaseException:
                launcher.wait()
                _kill(lock)
                raise
    return int(lock.read_text())


def _begun(command: Sequence[str], folder: Path, lock: int) -> "subprocess.Popen[bytes]":
    with (folder / OWN_LOG).open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - no shell, and our own arguments
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(lock), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": import_path()},
            pass_fds=(lock,),
        )


def _tell(process: "subprocess.Popen[bytes]", told: bytes) -> None:
    if process.stdin is None:
        return
    try:
        process.stdin.write(told)
        process.stdin.close()
    except BrokenPipeError:
        return  # it has ended: its log says why


def _await_ready(process: "subprocess.Popen[bytes]", patience_s: float, log: Path) -> None:
    if process.stdout is None:
        return
    said, until_s = b"", time.monotonic() + patience_s
    while b"\n" not in said and len(said) < _MOST_LINE_BYTES:
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
            raise EngineError(f"its agent did not get ready within {patience_s:g} s; see {log}")
        more = os.read(process.stdout.fileno(), _MOST_LINE_BYTES)
        if not more:
            break
        said += more
    line = said.partition(b"\n")[0].decode(errors="replace").strip()
    if line == "ready":
        return
    reason = line.removeprefix("failed:").strip() or _last_line(log) or "it printed nothing"
    raise EngineError(f"its agent did not start: {reason}")


def _last_line(log: Path) -> str:
    """Return the last line of *log* that is not empty; in a traceback that is the error."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _kill(lock: Path) -> None:
    """Kill an agent with all processes that it has started: it leads their group."""
    until_s = time.monotonic() + _GRACE_S
    # the launcher writes the process id to the lock first of all
    while not (said := lock.read_text()) and time.monotonic() < until_s:
        time.sleep(_LOOK_S)
    with suppress(ValueError, ProcessLookupError):
        os.killpg(int(said), signal.SIGKILL)


def _running(lock: Path) -> int:
    """Return the process id of the agent that holds *lock*.

    Raise `EngineError` if only processes that it had started hold it.
    """
    said = lock.read_text()
    with suppress(ValueError, psutil.Error):
        if psutil.Process(int(said)).status() != psutil.STATUS_ZOMBIE:
            return int(said)
    raise EngineError("processes of its previous agent are still running")

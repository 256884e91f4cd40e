"""All processes of a machine of a trial cluster: its worker, executors and their children.

An environment variable that each process inherits identifies them. Process groups and parents
would not: a process may start a new session, or outlive its parent.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

from sojourn_trial.cluster.recorded_process import RecordedProcess

MARK = "SOJOURN_TRIAL_MACHINE"
"""The environment variable with the mark of the machine."""

_LOOK_S = 0.02
_STARTS_S = 2.0
_PATIENCE_S = 20.0


def processes_of(marks: Iterable[str], roots: Iterable[RecordedProcess]) -> set[psutil.Process]:
    """Return the processes that have one of the *marks*, or descend from *roots*."""
    wanted, found = set(marks), set[psutil.Process]()
    for process in psutil.process_iter():
        # the process may have ended, or belong to another user
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and _environment(process).get(MARK) in wanted:
                found.add(process)
    for root in roots:
        with suppress(psutil.Error):
            process = psutil.Process(root.pid)
            if root.runs:
                found |= {process, *process.children(recursive=True)}
    return {process for process in found if _runs(process)}


def kill(find: Callable[[], set[psutil.Process]]) -> None:
    """Kill the processes that *find* returns, until it returns none.

    One pass is not enough, because a process may fork just before it is killed.
    """
    deadline_s = time.monotonic() + _PATIENCE_S
    while (found := find()) and time.monotonic() < deadline_s:
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(_LOOK_S)


def end(
    roots: Iterable[RecordedProcess], find: Callable[[], set[psutil.Process]], grace_s: float
) -> None:
    """Terminate *roots*; after *grace_s*, kill all that *find* returns or has returned."""
    before = find()  # a child may be found only through its parent, which ends first
    for root in roots:
        with suppress(psutil.Error):
            process = psutil.Process(root.pid)
            if root.runs:
                process.terminate()
    deadline_s = time.monotonic() + grace_s

    def left() -> set[psutil.Process]:
        return {process for process in before | find() if _runs(process)}

    while left() and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
    kill(left)


def _environment(process: psutil.Process) -> dict[str, str]:
    """Return the environment of a process; of our children, once it is there.

    The kernel sets it up after it has closed the pipe by which `subprocess` learns of the
    start, so that of a child may be empty for a moment.
    """
    deadline_s = time.monotonic() + _STARTS_S
    while not (environment := process.environ()):
        ours = process.ppid() == os.getpid() and _runs(process)
        if not ours or time.monotonic() > deadline_s:
            break
        time.sleep(_LOOK_S)
    return environment


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False

"""The CPU time of an application, by kind of process; of Java, what compiling takes apart."""

from contextlib import suppress
from pathlib import Path

import psutil

from sojourn_trial.kills.victims import found, running

KINDS = ("driver", "jvm", "worker", "host", "processor")
COMPILER = "compiler"
_COMPILES = ("C1 CompilerThre", "C2 CompilerThre")  # so much of a thread's name Linux keeps


def cpu_s(processes):
    """Return the CPU seconds of *processes* so far, and of their children that have ended."""
    total_s = 0.0
    for process in processes:
        try:
            total_s += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:  # it ended meanwhile, and is counted by its parent
            continue
    return total_s


def cpu_by_kind(family):
    """Return the CPU seconds of processes so far, by kind; the first drives all others.

    Java compiles what it executes often, for minutes after a start: that is counted apart.
    """
    seen = [running(process) for process in family]
    used_s = {
        kind: cpu_s([process for process in family if process.pid in found(seen, kind)])
        for kind in KINDS
    }
    compiled_s = sum(_compiled_s(pid) for pid in found(seen, "jvm"))
    return used_s | {"jvm": used_s["jvm"] - compiled_s, COMPILER: compiled_s}


def _compiled_s(pid):
    """Return the CPU seconds of the threads of a Java process that compile."""
    total_s = 0.0
    with suppress(psutil.Error):
        for thread in psutil.Process(pid).threads():
            with suppress(OSError):  # it has ended
                name = Path(f"/proc/{pid}/task/{thread.id}/comm").read_text().strip()
                total_s += thread.user_time + thread.system_time if name in _COMPILES else 0.0
    return total_s

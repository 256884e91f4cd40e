"""The roles of the processes of an application: host, processor, worker and others."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_HOST, _TEMPLATE, _DAEMON = (
    "sojourn.spark.host",
    "sojourn.spark.processor.template",
    "pyspark.daemon",
)
_AGENT = "sojourn.spark.agent"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Running:
    """A process with its parent and its command."""

    pid: int
    parent: int | None
    command: tuple = ()


def running(process):
    """Return pid, parent and command of a process of psutil; only its pid if it has ended."""
    with suppress(psutil.Error):
        return Running(process.pid, process.ppid(), tuple(process.cmdline()))
    return Running(process.pid, None)


def found(family, target, operator=None):
    """Return the pids of the processes that are a *target*, of *operator* or of all.

    *target* is one of `schedule`. The first of the *family* is the driver.

    >>> family = [
    ...     Running(1, 0, ("python", "driven.py")),
    ...     Running(2, 1, ("python", "-m", "sojourn.spark.host", "read")),
    ...     Running(3, 2, ("python", "-m", _TEMPLATE, "7", "job", "app split")),
    ...     Running(4, 3, ("python", "-m", _TEMPLATE, "7", "job", "app split")),
    ... ]
    >>> {name: found(family, name) for name in ("driver", "host", "template", "processor")}
    {'driver': [1], 'host': [2], 'template': [3], 'processor': [4]}
    >>> found(family, "processor", "split"), found(family, "processor", "merge")
    ([4], [])
    >>> [found(family, "host", operator) for operator in ("read", "split", "merge")]
    [[2], [2], []]
    """
    known = {process.pid: process for process in family}
    nobody = Running(0, None)

    def is_found(process):
        above = known.get(process.parent, nobody)
        of_template, of_daemon = _TEMPLATE in above.command, _DAEMON in above.command
        is_one = {
            "driver": process == family[0],
            "everything": True,
            "jvm": bool(process.command) and Path(process.command[0]).name == "java",
            "host": _HOST in process.command,
            "agent": _AGENT in process.command,
            "executor": _EXECUTOR in process.command,
            "template": _TEMPLATE in process.command and not of_template,
            "processor": of_template,
            "daemon": _DAEMON in process.command and not of_daemon,
            "worker": of_daemon,
        }[target]
        return is_one and (operator is None or _serves(process, operator, family))

    return [process.pid for process in family if is_found(process)]


def on_nodes(folder, target):
    """Return the processes that are a *target* on the nodes of a trial cluster in *folder*.

    They are recognised by their working directory.
    """
    there = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                there.append(process)
    pids = found([running(process) for process in there], target)
    return [process for process in there if process.pid in pids]


def _serves(process, operator, family):
    """Return whether a host, template or processor serves an operator; others serve all.

    The command of a host names its part, which is only one of its operators; its templates name
    all of them.
    """
    if _HOST in process.command:
        below = [each for each in family if each.parent == process.pid and each.command]
        return process.command[-1] == operator or any(
            _TEMPLATE in each.command and _serves(each, operator, family) for each in below
        )
    if _TEMPLATE in process.command:
        return process.command[-1].rpartition(" ")[2] == operator
    return True

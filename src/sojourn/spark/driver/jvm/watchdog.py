"""Runs a command for as long as its parent process lives.

A standalone program without imports from sojourn, so that it starts fast:
`python -I -S watchdog.py PARENT GRACE_S FOLDER COMMAND…`. Its standard input is a pipe that
PARENT holds open. When the pipe is closed or PARENT dies, the watchdog ends the command. If
PARENT is dead, it also removes FOLDER, unless that argument is empty.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

# Polling interval for events without a notification: the exit of the command, and the death of
# a parent whose other children still hold the pipe open.
_LOOK_S = 0.1
_PR_SET_PDEATHSIG = 1


def keep(command: Sequence[str], *, parent: int, lifeline: int, grace_s: float) -> int:
    """Run *command* until it exits, *lifeline* closes or *parent* dies; return its status."""
    # the kernel kills the command if this process is killed; only Linux has this call
    die_with_me = (
        partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL)
        if sys.platform == "linux"
        else None
    )
    child = subprocess.Popen(  # noqa: S603 - running a given command is the purpose
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_me,  # noqa: PLW1509 - single-threaded
    )
    try:
        while child.poll() is None and os.getppid() == parent:
            if select.select([lifeline], [], [], _LOOK_S)[0]:
                break
    finally:
        _end(child, grace_s)
    return child.returncode


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    child.terminate()
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def main(arguments: Sequence[str]) -> int:
    """Run the command in the arguments; return its exit status as a shell would."""
    parent, grace_s, folder, *command = arguments
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        status = keep(command, parent=int(parent), lifeline=0, grace_s=float(grace_s))
        return status if status >= 0 else 128 - status
    finally:
        if folder and os.getppid() != int(parent):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

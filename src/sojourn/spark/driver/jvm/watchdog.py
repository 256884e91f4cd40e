"""Runs a command for as long as the process that wants it is there.

A program of its own that imports nothing of sojourn, so that it starts in an instant:
`python -I -S watchdog.py PARENT GRACE_S FOLDER COMMAND…`, whose standard input is a pipe that
PARENT holds open. Once the pipe is closed, or PARENT is dead by whatever, the command is
ended. FOLDER, if it is not empty, is removed where PARENT cannot do it any more.
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

__all__ = ["keep", "main"]

# How often to look after what tells nothing: a parent's death where a child of its own still
# holds the pipe, and the end of the command.
_LOOK_S = 0.1
_PR_SET_PDEATHSIG = 1


def keep(command: Sequence[str], *, parent: int, lifeline: int, grace_s: float) -> int:
    """Return the exit status of *command*, which ends when *lifeline* is closed."""
    # even if this process is killed; elsewhere than on Linux there is no such call
    die_with_me = (
        partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL)
        if sys.platform == "linux"
        else None
    )
    child = subprocess.Popen(  # noqa: S603 - what we were asked to run
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_me,  # noqa: PLW1509 - there is one thread
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
    """Keep what the arguments say; return its exit status, as a shell would."""
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

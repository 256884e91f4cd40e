"""A process that ends with this one, even if this one is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sojourn.app.loading import import_path
from sojourn.files.private_files import append_to

__all__ = ["ChildProcess"]

_WATCHDOG = Path(__file__).with_name("watchdog.py")
# What a watchdog needs beside the grace that it gives.
_SLACK_S = 5.0


class ChildProcess:
    """*command*, running in *folder*, with what it prints in *log*.

    Between the two stands a watchdog (`watchdog.py`), which ends the command when this process
    ends. Neither is hit by Ctrl-C in the terminal: the command ends when it is told to.
    *temporary* says that the folder is of no use afterwards. The watchdog *inherits* these open
    files, and has them until the command has ended. Its *environment* and *umask* are ours
    where none is given; if it is Python, it can import what we can. A watchdog that takes
    *slack_s* more than *grace_s* to end the command is killed with it.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        command: Sequence[str],
        *,
        folder: Path,
        log: Path,
        grace_s: float,
        temporary: bool = False,
        inherits: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
        slack_s: float = _SLACK_S,
    ) -> None:
        self._grace_s, self._slack_s = grace_s, slack_s
        asked = (str(os.getpid()), str(grace_s), str(folder) if temporary else "", *command)
        with append_to(log) as out:
            self._watchdog = subprocess.Popen(  # noqa: S603 - no shell, and our own arguments
                [sys.executable, "-I", "-S", _WATCHDOG, *asked],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**(environment or os.environ), "PYTHONPATH": import_path()},
                start_new_session=True,
                pass_fds=tuple(inherits),
                umask=umask,
            )

    @property
    def group(self) -> int:
        """The process group of watchdog and command."""
        return self._watchdog.pid

    @property
    def status(self) -> int | None:
        """The exit status of the command; None while it runs."""
        return self._watchdog.poll()

    def wait(self) -> int:
        """Return the exit status of the command when it has ended by itself."""
        return self._watchdog.wait()

    def stop(self) -> None:
        """Ask the command to end, and kill it if it does not within the grace."""
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.close()
        try:
            self._watchdog.wait(self._grace_s + self._slack_s)
        except subprocess.TimeoutExpired:
            os.killpg(self._watchdog.pid, signal.SIGKILL)
            self._watchdog.wait()

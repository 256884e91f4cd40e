"""A child process that ends with this process, even if this process is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sojourn.app.loading import import_path
from sojourn.files.private_files import append_to

_WATCHDOG = Path(__file__).with_name("watchdog.py")
# Time that a watchdog needs in addition to the grace of its command.
_SLACK_S = 5.0


class ChildProcess:
    """A *command* that runs in *folder* and prints to *log*.

    Its parent is a watchdog (`watchdog.py`), which ends the command when this process ends.
    Both are in a session of their own, so Ctrl-C in the terminal does not reach them. A Python
    command has the import path of this process.

    *grace_s*: time from SIGTERM until the command is killed.
    *temporary*: whether the watchdog removes *folder* if this process dies.
    *inherits*: file descriptors that the watchdog keeps open until the command has ended.
    *environment*, *umask*: those of this process if not given.
    *slack_s*: time after *grace_s* until the watchdog is killed together with the command.
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
                stdin=subprocess.PIPE,  # closed by the kernel, however this process ends
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
        """Process group of the watchdog and the command."""
        return self._watchdog.pid

    @property
    def status(self) -> int | None:
        """Exit status of the command; None while it runs."""
        return self._watchdog.poll()

    def wait(self) -> int:
        return self._watchdog.wait()

    def stop(self) -> None:
        """Terminate the command, and kill it if it outlives the grace."""
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.close()
        try:
            self._watchdog.wait(self._grace_s + self._slack_s)
        except subprocess.TimeoutExpired:
            os.killpg(self._watchdog.pid, signal.SIGKILL)
            self._watchdog.wait()

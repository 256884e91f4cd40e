"""A process of a trial cluster, with a log and a folder of its own."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from sojourn.errors import EngineError
from sojourn.spark.driver.jvm.child_process import ChildProcess
from sojourn_trial.cluster.recorded_process import RecordedProcess

_Found = TypeVar("_Found")
_LOOK_S = 0.05
_GRACE_S = 5.0
_LOG_LINES = 8


class Daemon:
    """A process that runs *command* in *folder*, with its output in a log next to the folder.

    A *detached* daemon outlives this process. Any other ends with this process, even if this
    process is killed: a watchdog sees to that.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        detached: bool,
    ) -> None:
        self._name, self.log = folder.name, folder.with_suffix(".log")
        folder.mkdir(mode=0o700)
        self._child = (
            _detached(command, folder, self.log, environment)
            if detached
            else ChildProcess(
                command,
                folder=folder,
                log=self.log,
                grace_s=_GRACE_S,
                environment=environment,
            )
        )

    @property
    def process(self) -> RecordedProcess:
        """The process to record: the watchdog, if there is one."""
        child = self._child
        pid = child.group if isinstance(child, ChildProcess) else child.pid
        process = RecordedProcess.of(pid)
        if process is None:
            raise self._ended()
        return process

    def wait_for(self, found: Callable[[Path], _Found | None], patience_s: float) -> _Found:
        """Poll the log until *found* returns a value, and return that value.

        Raise `EngineError` if the process ends first, or after *patience_s*.
        """
        child, deadline_s = self._child, time.monotonic() + patience_s
        while (answer := found(self.log)) is None:
            if (child.status if isinstance(child, ChildProcess) else child.poll()) is not None:
                raise self._ended()
            if time.monotonic() > deadline_s:
                raise EngineError(
                    f"{self._name} did not start within {patience_s:g} s; check the load on "
                    f"this machine; {self._last_words()}"
                )
            time.sleep(_LOOK_S)
        return answer

    def reap(self) -> None:
        """Wait for the process to exit after it has been killed."""
        if isinstance(self._child, ChildProcess):
            self._child.stop()
        else:
            self._child.wait()

    def _ended(self) -> EngineError:
        return EngineError(f"{self._name} ended while it started; {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n  ".join(["last lines of its log:", *lines])


def _detached(
    command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - no shell, and our own arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

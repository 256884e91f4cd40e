"""`python -m sojourn.spark.driver.load.producer`: sends records to topics at rates that change.

The program reads the load (`offered_load.Load`) from `load.json` in its working folder. When
the load ends, or on SIGTERM or SIGINT, it writes its report to `report.json`.
"""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Self

import msgspec

from sojourn.errors import EngineError, SojournError
from sojourn.spark.driver.jvm.child_process import ChildProcess
from sojourn.spark.driver.load.offered_load import Load, LoadReport
from sojourn.spark.driver.load.sender import Sender

# More than `Sender` waits for the last acknowledgements.
_GRACE_S = 10.0
_LAST_LINES = 10
_LOAD, _REPORT = "load.json", "report.json"


class LoadProcess:
    """A load in a child process; a context manager that stops the process on exit."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._folder: Path | None = None
        self._process: ChildProcess | None = None
        self._outcome: LoadReport | EngineError = EngineError(
            "the load was not started; start it first"
        )

    @property
    def sent(self) -> LoadReport:
        """Report of the load. Raise `EngineError` while the process runs, or if it failed."""
        if isinstance(self._outcome, EngineError):
            raise self._outcome
        return self._outcome

    def start(self) -> None:
        """Start the process. Raise `EngineError` if it is already running."""
        if self._process is not None:
            raise EngineError("the load is already running; stop it first")
        self._outcome = EngineError("the load is still running; wait for it, or stop it")
        self._folder = Path(tempfile.mkdtemp(prefix="sojourn-load-"))
        (self._folder / _LOAD).write_bytes(msgspec.json.encode(self._load))
        self._process = ChildProcess(
            [sys.executable, "-m", "sojourn.spark.driver.load.producer"],
            folder=self._folder,
            log=self._folder / "log",
            grace_s=_GRACE_S,
            temporary=True,
        )

    def wait(self) -> LoadReport:
        """Wait for the end of the load, and return its report.

        Raise `EngineError` if the process failed.
        """
        if self._process is not None:
            self._process.wait()
            self.stop()
        return self.sent

    def stop(self) -> None:
        """Stop the load, and keep its report in `sent`; do nothing if it does not run."""
        if self._process is None or self._folder is None:
            return
        self._process.stop()
        self._outcome = _outcome(self._process.status, self._folder)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._folder = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()


def main(folder: Path) -> int:
    """Send the load in *folder*; return the exit status."""
    try:
        load = msgspec.json.decode((folder / _LOAD).read_bytes(), type=Load)
        sender = Sender(load)
        for told in (signal.SIGTERM, signal.SIGINT):
            signal.signal(told, lambda *_: sender.stop())
        sent = sender.run()
    except SojournError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    (folder / _REPORT).write_bytes(msgspec.json.encode(sent))
    return 0


def _outcome(status: int | None, folder: Path) -> LoadReport | EngineError:
    """Return the report of a process that exited with *status*, or its error."""
    if status == 0:
        return msgspec.json.decode((folder / _REPORT).read_bytes(), type=LoadReport)
    said = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    last = " / ".join(said[-_LAST_LINES:]) or "nothing"
    return EngineError(f"the load exited with status {status}; its last output: {last}")


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))

"""What is written down of a trial cluster, so that another command can end it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import msgspec

from sojourn.errors import BadFile
from sojourn.files.durable_file import write_durably
from sojourn_trial.cluster.recorded_process import RecordedProcess

__all__ = ["STATE", "TrialState", "TrialWorker"]

STATE = "cluster.json"
"""The file in the folder of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialWorker:
    """Worker *number* of a cluster, at *address*; *namespace* is empty where it has none.

    *process* is the first of its machine: all others descend from it. *link* delays what goes
    to and from it, if anything does.
    """

    number: int
    process: RecordedProcess
    address: str
    namespace: str = ""
    link: RecordedProcess | None = None

    @property
    def pid(self) -> int:
        """The pid of its first process."""
        return self.process.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialState:
    """A cluster that *starter* started, under a *token* that no other has.

    *master* is its URL, *page* that of its web page; both are empty until it has started.
    *network* is the number of its network, None without one, and *why_plain* says why. So many
    *machines* were started, some of which may have been killed.
    """

    token: str
    starter: RecordedProcess
    cores: int
    memory_mb: int
    driver_address: str = "127.0.0.1"
    master: str = ""
    page: str = ""
    master_process: RecordedProcess | None = None
    workers: tuple[TrialWorker, ...] = ()
    network: int | None = None
    why_plain: str = ""
    machines: int = 0

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of all its machines, and of the master."""
        return tuple(self.mark(number) for number in range(self.machines + 1))

    @property
    def processes(self) -> tuple[RecordedProcess, ...]:
        """The first process of each machine, and of the master."""
        links = (worker.link for worker in self.workers)
        found = (self.master_process, *(worker.process for worker in self.workers), *links)
        return tuple(process for process in found if process is not None)

    @property
    def runs(self) -> bool:
        """Whether a process of it runs."""
        return any(process.runs for process in self.processes)

    def mark(self, number: int) -> str:
        """Return the mark of machine *number*; 0 is the master.

        >>> me = RecordedProcess(pid=1, started="")
        >>> TrialState(token="f00", starter=me, cores=4, memory_mb=1024).mark(2)
        'f00/2'
        """
        return f"{self.token}/{number}"

    def without(self, number: int) -> Self:
        """Return the state without worker *number*."""
        return replace(
            self, workers=tuple(each for each in self.workers if each.number != number)
        )

    def write(self, folder: Path) -> None:
        """Write it into *folder*, atomically."""
        write_durably(folder / STATE, msgspec.json.encode(self))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return what is written in *folder*; None if no cluster is.

        Raise `BadFile` if it cannot be read.
        """
        path = folder / STATE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise BadFile(
                str(path),
                f"does not describe a trial cluster: {error}",
                "end its processes by hand, and remove the folder",
            ) from error

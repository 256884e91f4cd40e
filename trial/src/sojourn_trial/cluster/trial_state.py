"""The state of a trial cluster on disk, so that another command can end the cluster."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import msgspec

from sojourn.errors import BadFile
from sojourn.files.durable_file import write_durably
from sojourn_trial.cluster.recorded_process import RecordedProcess

STATE = "cluster.json"
"""The file in the folder of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialWorker:
    """A worker of a trial cluster."""

    number: int
    process: RecordedProcess
    """The first process of the machine; all others descend from it."""
    address: str
    namespace: str = ""
    """The network namespace; empty if the worker is a plain process."""
    link: RecordedProcess | None = None
    """The process that delays packets to and from the worker."""

    @property
    def pid(self) -> int:
        """The pid of the first process."""
        return self.process.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialState:
    """A trial cluster: its master, workers and network."""

    token: str
    """Identifies the cluster in marks of processes and on its network."""
    starter: RecordedProcess
    """The process that started the cluster."""
    cores: int
    memory_mb: int
    driver_address: str = "127.0.0.1"
    master: str = ""
    """The URL of the master; empty until it has started."""
    page: str = ""
    """The URL of the web page."""
    master_process: RecordedProcess | None = None
    workers: tuple[TrialWorker, ...] = ()
    network: int | None = None
    """The number of the network; None without network namespaces."""
    why_plain: str = ""
    """The reason why there are no network namespaces."""
    machines: int = 0
    """The number of workers ever started, including those that were killed."""

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of all machines, the master's first."""
        return tuple(self.mark(number) for number in range(self.machines + 1))

    @property
    def processes(self) -> tuple[RecordedProcess, ...]:
        """The first process of the master and of each worker, and the links."""
        links = (worker.link for worker in self.workers)
        found = (self.master_process, *(worker.process for worker in self.workers), *links)
        return tuple(process for process in found if process is not None)

    @property
    def runs(self) -> bool:
        """Whether any process of the cluster runs."""
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
        """Write the state into *folder*, atomically."""
        write_durably(folder / STATE, msgspec.json.encode(self))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the state in *folder*; None if there is no cluster.

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

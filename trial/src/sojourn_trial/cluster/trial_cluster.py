"""A Spark standalone cluster on this machine, for trials and tests with several nodes."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import psutil

from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.jvm.java import find_java
from sojourn_trial.cluster.daemon import Daemon
from sojourn_trial.cluster.machine_processes import kill, processes_of
from sojourn_trial.cluster.recorded_process import RecordedProcess
from sojourn_trial.cluster.spark_daemon import (
    daemon_environment,
    master_command,
    registered,
    started_at,
    worker_command,
)
from sojourn_trial.cluster.trial_folder import claim_folder, end_state, network_of
from sojourn_trial.cluster.trial_network import TrialNetwork, Wire, claim_network, why_not
from sojourn_trial.cluster.trial_state import TrialState, TrialWorker

_MOST_NODES = 99
_MOST_CORES = 1024
_MOST_MB = 1 << 24


class TrialCluster:
    """A master and *nodes* workers. As a context manager it stops them at the end.

    Each worker has *cores* and *memory_mb* for executors. It runs in a network namespace, like
    a machine of its own, and is connected by a *wire*. If *plain*, or if the system has no
    network namespaces, it is a process on 127.0.0.1 instead. *folder* is created, and removed
    at the end; the default is a temporary folder. A *detached* cluster outlives this process
    until `end_cluster`. Any other ends with this process, even if this process is killed.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        nodes: int = 3,
        *,
        cores: int = 4,
        memory_mb: int = 1024,
        folder: Path | None = None,
        plain: bool = False,
        wire: Wire | None = None,
        detached: bool = False,
        patience_s: float = 120.0,
    ) -> None:
        _check("number of nodes", nodes, _MOST_NODES)
        _check("number of cores", cores, _MOST_CORES)
        _check("memory in MB", memory_mb, _MOST_MB)
        self._nodes, self._cores, self._memory_mb = nodes, cores, memory_mb
        self._wanted, self._detached, self._patience_s = folder, detached, patience_s
        self._plain, self._wire = plain, wire or Wire()
        self._network: TrialNetwork | None = None
        self._state: TrialState | None = None
        self._daemons: dict[str, Daemon] = {}

    @property
    def master(self) -> str:
        """The URL of the master: `spark://127.0.0.1:41237`."""
        return self.state.master

    @property
    def workers(self) -> tuple[TrialWorker, ...]:
        """The workers that were started and not killed."""
        return self.state.workers

    @property
    def driver_address(self) -> str:
        """The address of this machine for executors: drivers and brokers must listen on it."""
        return self.state.driver_address

    @property
    def state(self) -> TrialState:
        """The state on disk. Raise `EngineError` if the cluster does not run."""
        if self._state is None:
            raise EngineError("the cluster is not running; start it first")
        return self._state

    def start(self) -> None:
        """Start master and workers, and wait until all workers have registered."""
        if self._state is not None:
            raise EngineError("the cluster is already running; stop it first")
        find_java()
        starter = RecordedProcess.of(os.getpid())
        if starter is None:
            raise EngineError(f"process {os.getpid()} is not found; mount /proc")
        state = TrialState(
            token=secrets.token_hex(16),
            starter=starter,
            cores=self._cores,
            memory_mb=self._memory_mb,
        )
        self.folder = claim_folder(self._wanted, state)
        self._state = state
        try:
            self._claim_network()
            self._start_master()
            # launch all before waiting for any, so that they start concurrently
            for number in [self._launch_worker() for _ in range(self._nodes)]:
                self._wait_for(number)
        except BaseException:
            self.stop()
            raise

    def add(self) -> TrialWorker:
        """Start one more worker, wait until it has registered, and return it."""
        number = self._launch_worker()
        self._wait_for(number)
        return self._worker(number)

    def kill(self, number: int) -> None:
        """Kill all processes on the machine of worker *number* (SIGKILL)."""
        worker = self._worker(number)
        network, mark = network_of(self.state), self.state.mark(number)

        def find() -> set[psutil.Process]:
            found = processes_of([mark], [worker.process])
            return found if network is None else found | network.processes([number])

        kill(find)
        if worker.link is not None:  # last: it delivers the closing of connections
            link = worker.link
            kill(lambda: processes_of([], [link]))
        if network is not None:
            network.disconnect(number)
        self._record(self.state.without(number))
        self._reap([f"worker-{number}", f"link-{number}"])

    def cut(self, number: int) -> None:
        """Disconnect the machine of worker *number*; its processes continue to run."""
        self._cuttable(number).cut(number)

    def mend(self, number: int) -> None:
        """Reconnect a machine after `cut`."""
        self._cuttable(number).mend(number)

    def stop(self) -> None:
        """End all processes of the cluster. Do nothing if it does not run."""
        if self._state is not None:
            end_state(self._state, self.folder)
            self._state = self._network = None
            self._reap(list(self._daemons))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _claim_network(self) -> None:
        why = "processes are asked for" if self._plain else why_not()
        if not why:
            try:
                self._network = network = claim_network(self.state.token)
                address = network.driver_address
                found = replace(self.state, network=network.number, driver_address=address)
                self._record(found)
            except EngineError as error:
                why = str(error)
        if why and self._wire != Wire():
            raise BadInput(f"a rate or a delay needs network namespaces, but {why}")
        self._record(replace(self.state, why_plain=why))

    def _start_master(self) -> None:
        address = self.state.driver_address
        daemon = self._launch("master", 0, master_command(address), address)
        self._record(replace(self.state, master_process=daemon.process))
        url, page = daemon.wait_for(started_at, self._patience_s)
        self._record(replace(self.state, master=url, page=page))

    def _launch_worker(self) -> int:
        """Start a worker, and return its number."""
        number, name = self.state.machines + 1, f"worker-{self.state.machines + 1}"
        _check("number of nodes", number, _MOST_NODES)
        # recorded before the start: if this process is killed, `end_cluster` finds the machine
        self._record(replace(self.state, machines=number))
        link, into = None, list[str]()
        address, namespace = self.state.driver_address, ""
        if self._network is not None:
            link = self._connect(self._network, number)
            address = self._network.address(number)
            namespace = self._network.namespace(number)
            into = ["ip", "netns", "exec", namespace]
        command = worker_command(
            self.state.master,
            address,
            self.folder / name / "work",
            cores=self._cores,
            memory_mb=self._memory_mb,
        )
        worker = TrialWorker(
            number=number,
            process=self._launch(name, number, [*into, *command], address).process,
            address=address,
            namespace=namespace,
            link=link,
        )
        self._record(replace(self.state, workers=(*self.state.workers, worker)))
        return number

    def _connect(self, network: TrialNetwork, number: int) -> RecordedProcess | None:
        """Connect the machine of a worker; return the process that delays packets, if any."""
        link = None
        if self._wire.delay_s:
            command = network.link_command(number, self._wire.delay_s)
            # marked as part of the master's machine: `kill` of a worker ends it separately
            daemon = self._launch(f"link-{number}", 0, command, network.driver_address)
            daemon.wait_for(lambda log: "ready" in log.read_text() or None, self._patience_s)
            link = daemon.process
        network.connect(number, self._wire)
        return link

    def _launch(self, name: str, machine: int, command: Sequence[str], address: str) -> Daemon:
        folder, mark = self.folder / name, self.state.mark(machine)
        daemon = self._daemons[name] = Daemon(
            command,
            folder=folder,
            environment=daemon_environment(mark, address, folder),
            detached=self._detached,
        )
        return daemon

    def _wait_for(self, number: int) -> None:
        self._daemons[f"worker-{number}"].wait_for(registered, self._patience_s)

    def _worker(self, number: int) -> TrialWorker:
        for worker in self.workers:
            if worker.number == number:
                return worker
        known = ", ".join(str(each.number) for each in self.workers) or "none"
        raise BadInput(f"there is no worker {number}; there are: {known}")

    def _cuttable(self, number: int) -> TrialNetwork:
        self._worker(number)
        if self._network is None:
            raise BadInput(
                f"worker {number} has no network of its own to cut: {self.state.why_plain}"
            )
        return self._network

    def _reap(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._daemons:
                self._daemons.pop(name).reap()

    def _record(self, state: TrialState) -> None:
        self._state = state
        state.write(self.folder)


def _check(what: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise BadInput(f"the {what} is {value}; write 1 to {most}")

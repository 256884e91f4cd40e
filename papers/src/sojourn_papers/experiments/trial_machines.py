"""Machines of a trial cluster that come and go with the processors of an application."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from sojourn.act.node_scaling import NodeBounds
from sojourn.engine import Engine, NodeHealth, health
from sojourn.errors import EngineError, SojournError
from sojourn.spark.driver.settings import SparkSettings
from sojourn_papers.experiments.machine_changes import MachineChange, MachineLog
from sojourn_trial.cluster.trial_cluster import TrialCluster

# One slot of an executor starts its agent; the others are for tasks that read from Kafka.
_CORES, _EXECUTOR_MB, _WORKER_MB = 5, 600, 700
# Longer than any run: at the end of a batch tasks begin anew, some on executors that must first
# start Python. A machine that reads from Kafka is removed only if all others do, too.
_BATCH_S = 86400.0
# Many JVMs share the cores of this machine: what they compile would take longer than it saves.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOOK_S, _PATIENCE_S = 0.05, 120.0


class TrialMachines:
    """A trial cluster with as many machines, within *bounds*, as *processors* need.

    A context manager; leaving it ends all machines. An application runs on it with `settings`.
    While it is `following` one, a machine is started when the processors of the application
    need one more, which Spark then gives to it, and stopped when it has been given back.
    """

    def __init__(self, bounds: NodeBounds, processors: int) -> None:
        self._bounds, self._first = bounds, bounds.holding(processors)
        self._log = MachineLog()
        self._failure: SojournError | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            prefix = "sojourn-machines-"
            folder = Path(stack.enter_context(TemporaryDirectory(prefix=prefix))).resolve()
            self._folder = folder / "cluster"
            self._cluster = TrialCluster(
                self._first, cores=_CORES, memory_mb=_WORKER_MB, folder=self._folder, plain=True
            )
            stack.enter_context(self._cluster)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    @property
    def settings(self) -> SparkSettings:
        """How an application runs on these machines."""
        return SparkSettings(
            batch_s=_BATCH_S,
            master=self._cluster.master,
            spark={
                "spark.driver.host": self._cluster.driver_address,
                "spark.executor.cores": str(_CORES),
                "spark.executor.memory": f"{_EXECUTOR_MB}m",
                "spark.executor.extraJavaOptions": _JAVA,
            },
            min_nodes=self._bounds.least,
            max_nodes=self._bounds.most,
            processors_per_node=self._bounds.processors,
            node_calm_s=self._bounds.calm_s,
        )

    @property
    def number(self) -> int:
        """How many machines run."""
        return len(self._cluster.workers)

    @property
    def changes(self) -> tuple[MachineChange, ...]:
        """The machines that were added and removed, by the clock of the engine.

        Raise `SojournError` if one could not be started or stopped.
        """
        if self._failure is not None:
            raise self._failure
        return self._log.changes

    @contextmanager
    def following(self, engine: Engine) -> Iterator[None]:
        """Follow the processors of *engine*, from when it uses all machines there are."""
        self._await_all(engine)
        stopping = threading.Event()
        threads = [
            threading.Thread(target=target, args=(engine, stopping), daemon=True)
            for target in (self._watch, self._start_and_stop)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            for thread in threads:
                thread.join()

    # -- inside ---------------------------------------------------------------------------

    def _await_all(self, engine: Engine) -> None:
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            used = [node for node in health(engine).nodes if _processors(node)]
            if len(used) >= self._first:
                return
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{len(used)} of {self._first} machines are used after {_PATIENCE_S:g} s; "
                    "is there enough memory?"
                )
            time.sleep(_LOOK_S)

    def _wanted(self, engine: Engine) -> int:
        return self._bounds.holding(engine.plan.processors)

    def _watch(self, engine: Engine, stopping: threading.Event) -> None:
        while not stopping.wait(_LOOK_S):
            planned = Counter[str]()
            for on in engine.plan.placement.values():
                planned.update(on)
            running = {node.name: _processors(node) for node in health(engine).nodes}
            self._log.look(
                engine.now_s, wanted=self._wanted(engine), planned=planned, running=running
            )

    def _start_and_stop(self, engine: Engine, stopping: threading.Event) -> None:
        worker_of: dict[str, int] = {}
        while not stopping.wait(_LOOK_S):
            nodes = {node.name: node.logs for node in health(engine).nodes}
            try:
                for name in worker_of.keys() - nodes.keys():
                    self._cluster.kill(worker_of.pop(name))
                for name in nodes.keys() - worker_of.keys():
                    if logs := nodes[name]:
                        worker_of[name] = _worker(Path(logs), self._folder)
                if len(self._cluster.workers) < self._wanted(engine):
                    self._cluster.add()
            except SojournError as error:
                self._failure = error
                return


def _processors(node: NodeHealth) -> int:
    return sum(node.processors.values())


def _worker(logs: Path, cluster: Path) -> int:
    """Return the number of the worker whose executor has its logs there.

    >>> _worker(Path("/tmp/c/worker-3/work/app-1/2/logs"), Path("/tmp/c"))
    3
    """
    return int(logs.relative_to(cluster).parts[0].removeprefix("worker-"))

"""The processes of a run: hosts, Java with Spark, and agents on the nodes of a cluster."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from sojourn.files.private_files import PRIVATE_UMASK
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.session import (
    end_session,
    new_session,
    remove_with_java,
    tasks_of,
)
from sojourn.spark.driver.layout import check_slots
from sojourn.spark.driver.native.headers import executor_environment, install_key
from sojourn.spark.driver.nodes.cluster_nodes import ClusterNodes
from sojourn.spark.driver.nodes.executors import executors
from sojourn.spark.driver.nodes.memory_need import executor_warning
from sojourn.spark.driver.run.placed_processors import PlacedProcessors
from sojourn.spark.driver.run.run_kafka import RunKafka
from sojourn.spark.driver.run.run_state import RunState, temporary_folder
from sojourn.spark.driver.run.start_request import StartRequest
from sojourn.spark.driver.state.shared_folder import SharedFolder
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.host_settings import HostSettings

# Paths of sockets must be short: Spark's are in our folder only if its own path is.
_MOST_FOLDER = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProcesses:
    controller: Controller
    hosts: Mapping[str, HostSettings]
    placed: PlacedProcessors
    session: SparkSession
    addresses: Mapping[str, HostAddress]
    """The addresses at which relays reach hosts, by part."""
    slots: int
    """The tasks that Spark can run in parallel."""
    nodes: ClusterNodes | None = None
    """The nodes of the cluster; None on one machine."""


def start_processes(
    request: StartRequest, state: RunState, kafka: RunKafka, stack: ExitStack
) -> RunProcesses:
    """Start all processes, and return when processors can take records.

    Everything that was started ends with *stack*.
    """
    # created late: hosts remove it, so until they run a killed driver would leave it behind
    folder = state.temporary or temporary_folder(stack)
    start = _Start(request=request, state=state, kafka=kafka, folder=folder)
    on_one_machine = request.settings.runs_on.is_local
    processes = start.here(stack) if on_one_machine else start.on_cluster(stack)
    for name in request.layout.functions:
        k = request.plan.allocation[name]
        processes.controller.await_running(name, k, patience_s=request.patience_s)
    processes.controller.tasks = partial(tasks_of, processes.session)
    return processes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Starts processes, with their sockets and temporary files in *folder*."""

    request: StartRequest
    state: RunState
    kafka: RunKafka
    folder: Path

    def here(self, stack: ExitStack) -> RunProcesses:
        """Start hosts and Java on this machine."""
        # both take seconds: hosts start in parallel with Java
        controller, hosts, placed = self._hosts(stack)
        session = self._session(stack)
        return RunProcesses(
            controller=controller,
            hosts=hosts,
            placed=placed,
            session=session,
            addresses=self.request.layout.addresses(self.folder),
            slots=self.kafka.slots,
        )

    def on_cluster(self, stack: ExitStack) -> RunProcesses:
        """Start hosts, agents on executors, and processors there."""
        request = self.request
        session = self._session(stack)
        if (file := request.layout.file) is not None:
            session.sparkContext.addFile(str(file.absolute()))
        machine = session.conf.get("spark.driver.host") or ""
        binds = session.conf.get("spark.driver.bindAddress", machine) or machine
        controller, hosts, placed = self._hosts(stack, binds)
        needed = sum(self.kafka.held.values())
        bounds = request.settings.bounds(needed)
        conf = dict(session.sparkContext.getConf().getAll())
        if warning := executor_warning(request.layout, bounds, needed, conf):
            request.progress(f"warning: {warning}")
        checkpoints = self.state.checkpoints
        shared = None
        if checkpoints.shared is not None:
            queries = sorted(checkpoints.written_by_tasks)
            shared = SharedFolder(session, checkpoints.shared, queries)
        nodes = stack.enter_context(
            ClusterNodes(
                session,
                controller,
                parts={part: host.operators for part, host in hosts.items()},
                machine=machine,
                least=bounds.least,
                elastic=bounds.most is not None,
                kafka=self.kafka.cluster.brokers(),
                shared=shared,
            )
        )
        nodes.begin(request.progress, request.patience_s)
        if shared is not None:
            # executors that register later are checked before their agent starts
            shared.check(executors(session))
        check_slots(self.kafka.held, nodes.slots)
        placed.use(lambda: nodes.nodes)
        addresses = {
            part: HostAddress(
                machine=machine,
                port=controller.launcher.port(part),
                secret=controller.launcher.secret,
                certificate=controller.launcher.certificate,
            )
            for part in hosts
        }
        return RunProcesses(
            controller=controller,
            hosts=hosts,
            placed=placed,
            session=session,
            addresses=addresses,
            slots=nodes.slots,
            nodes=nodes,
        )

    def _hosts(
        self, stack: ExitStack, binds: str | None = None
    ) -> tuple[Controller, Mapping[str, HostSettings], PlacedProcessors]:
        request, settings = self.request, self.request.settings
        checkpoints, allocation = self.state.checkpoints, request.plan.allocation
        layout = request.layout if binds is None else request.layout.on_nodes()
        controller = stack.enter_context(
            Controller(
                self.folder / "hosts",
                logs=checkpoints.logs,
                binds=binds,
                identity=request.identity,
            )
        )
        hosts = {
            part: replace(
                layout.host(part, self.folder, checkpoints, allocation, self.kafka.epoch),
                relay_timeout_s=settings.relay_timeout_s,
                disk_patience_s=settings.disk_patience_s,
                kept_batches=settings.kept_batches,
            )
            for part in layout.parts
        }
        placed = PlacedProcessors(
            request.plan, layout.functions, controller, on_cluster=binds is not None
        )
        several = "" if len(hosts) == 1 else "s"
        request.progress(f"starting {len(hosts)} host{several} and Spark")
        for host in hosts.values():
            controller.launch(placed.of(host))
        return controller, hosts, placed

    def _session(self, stack: ExitStack) -> SparkSession:
        layout, folder = self.request.layout, self.folder
        # only if Spark itself signs: otherwise Python alone needs the key
        key = executor_environment(self.kafka.signing_key) if layout.signing_projections else {}
        session = new_session(
            layout.app.name,
            jars=resolve_jars(),
            slots=self.kafka.slots,
            master=self.request.settings.runs_on,
            options={
                "spark.local.dir": str(folder / "spark"),  # private: only we can read it
                # Hadoop sets the modes of checkpoints itself, whatever the umask of Java is
                "spark.hadoop.fs.permissions.umask-mode": f"{PRIVATE_UMASK:03o}",
                **(
                    {"spark.python.unix.domain.socket.dir": str(folder)}
                    if len(str(folder)) < _MOST_FOLDER
                    else {}
                ),
            },
            log=self.state.checkpoints.logs / "spark.log",
            inherits=[self.state.lock],
            environment=key,
        )
        stack.callback(end_session, session)
        install_key(session, key)
        # hosts do it too, but there may be none, or they may be killed together with the driver
        remove_with_java(session, folder)
        return session

"""The processes of a run: hosts, Java with Spark, and agents on the nodes of a cluster."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from sojourn.decide.plan import Plan
from sojourn.engine import Progress
from sojourn.files.private_files import PRIVATE_UMASK
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.session import end_session, new_session, remove_with_java
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.layout import Layout, check_slots
from sojourn.spark.driver.native.signature import executor_environment, install_key
from sojourn.spark.driver.nodes.cluster_nodes import ClusterNodes
from sojourn.spark.driver.nodes.executors import executors
from sojourn.spark.driver.nodes.memory_need import executor_warning
from sojourn.spark.driver.run.placed_processors import PlacedProcessors
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.shared_folder import shared_folder
from sojourn.spark.wire.encryption import RunIdentity
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.host_settings import HostSettings

__all__ = ["ProcessStart", "Processes"]

# Names of sockets must not be long: where that of our folder is, Spark's are beside it.
_MOST_FOLDER = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """What was started: relays of Spark reach hosts at *addresses*.

    Spark can run *slots* tasks at once. Only on a cluster there are *nodes*.
    """

    controller: Controller
    hosts: Mapping[str, HostSettings]
    placed: PlacedProcessors
    session: SparkSession
    addresses: Mapping[str, HostAddress]
    slots: int
    nodes: ClusterNodes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """Starts the processes of an application with the processors of *plan*.

    Its queries *held* so many slots, and a session on this machine has *slots*. Java keeps the
    *lock* of the state, an open file, until it has ended. With an *identity* connections
    between machines are encrypted. Nodes that are not there after *patience_s* end the start;
    they read from the brokers of *cluster*. What queries say of offsets is signed with
    *signing_key*.
    """

    layout: Layout
    settings: SparkSettings
    plan: Plan
    state: Checkpoints
    cluster: Cluster
    lock: int
    identity: RunIdentity | None
    held: Mapping[str, int]
    slots: int
    progress: Progress
    patience_s: float
    signing_key: bytes = field(default=b"", repr=False)

    def start(self, stack: ExitStack, folder: Path, epoch: str) -> Processes:
        """Start them, with what they need for this run in *folder*, until *stack* ends."""
        if self.settings.runs_on.is_local:
            # both take seconds: hosts start while Java does
            controller, hosts, placed = self._hosts(stack, folder, epoch)
            session = self._session(stack, folder)
            return Processes(
                controller=controller,
                hosts=hosts,
                placed=placed,
                session=session,
                addresses=self.layout.addresses(folder),
                slots=self.slots,
            )
        session = self._session(stack, folder)
        return self._on_cluster(stack, folder, epoch, session)

    def _on_cluster(
        self, stack: ExitStack, folder: Path, epoch: str, session: SparkSession
    ) -> Processes:
        """Start hosts, agents on executors, and processors there."""
        if (file := self.layout.file) is not None:
            session.sparkContext.addFile(str(file.absolute()))
        machine = session.conf.get("spark.driver.host") or ""
        binds = session.conf.get("spark.driver.bindAddress", machine) or machine
        controller, hosts, placed = self._hosts(stack, folder, epoch, binds)
        needed = sum(self.held.values())
        bounds = self.settings.bounds(needed)
        conf = dict(session.sparkContext.getConf().getAll())
        if warning := executor_warning(self.layout, bounds, needed, conf):
            self.progress(f"warning: {warning}")
        shared = shared_folder(session, self.state.shared, self.state.written_by_tasks)
        nodes = stack.enter_context(
            ClusterNodes(
                session,
                controller,
                parts={part: host.operators for part, host in hosts.items()},
                machine=machine,
                changed=placed.spread,
                processors=lambda: placed.wanted,
                bounds=bounds,
                kafka=self.cluster.brokers(),
                shared=shared,
            )
        )
        nodes.begin(self.progress, self.patience_s)
        if shared is not None:
            shared.check(executors(session))
        check_slots(self.held, nodes.slots)
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
        return Processes(
            controller=controller,
            hosts=hosts,
            placed=placed,
            session=session,
            addresses=addresses,
            slots=nodes.slots,
            nodes=nodes,
        )

    def _hosts(
        self, stack: ExitStack, folder: Path, epoch: str, binds: str | None = None
    ) -> tuple[Controller, Mapping[str, HostSettings], PlacedProcessors]:
        layout = self.layout if binds is None else self.layout.on_nodes()
        controller = stack.enter_context(
            Controller(
                folder / "hosts",
                logs=self.state.logs,
                binds=binds,
                identity=self.identity,
            )
        )
        hosts = {
            part: replace(
                layout.host(part, folder, self.state, self.plan.allocation, epoch),
                relay_timeout_s=self.settings.relay_timeout_s,
                disk_patience_s=self.settings.disk_patience_s,
                kept_batches=self.settings.kept_batches,
            )
            for part in self.layout.parts
        }
        placed = PlacedProcessors(
            self.plan, self.layout.functions, controller, everywhere=binds is not None
        )
        several = "" if len(hosts) == 1 else "s"
        self.progress(f"starting {len(hosts)} host{several} and Spark")
        for host in hosts.values():
            controller.launch(placed.of(host))
        return controller, hosts, placed

    def _session(self, stack: ExitStack, folder: Path) -> SparkSession:
        # only where Spark itself signs: elsewhere Python has the key
        key = executor_environment(self.signing_key) if self.layout.signs_in_spark else {}
        session = new_session(
            self.layout.app.name,
            jars=resolve_jars(),
            slots=self.slots,
            master=self.settings.runs_on,
            options={
                "spark.local.dir": str(folder / "spark"),  # others could read it elsewhere
                # Hadoop sets the modes of checkpoints itself, whatever the umask of Java is
                "spark.hadoop.fs.permissions.umask-mode": f"{PRIVATE_UMASK:03o}",
                **(
                    {"spark.python.unix.domain.socket.dir": str(folder)}
                    if len(str(folder)) < _MOST_FOLDER
                    else {}
                ),
            },
            log=self.state.logs / "spark.log",
            inherits=[self.lock],
            environment=key,
        )
        stack.callback(end_session, session)
        install_key(session, key)
        # hosts do it as well, but there may be none, or they may be killed together with this
        remove_with_java(session, folder)
        return session

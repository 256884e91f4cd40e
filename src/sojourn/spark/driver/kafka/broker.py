"""A single-node Kafka broker that Sojourn starts and stops itself.

It listens on the loopback interface unless another address is given, requires a generated
password, and does not outlive the process that started it.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException

from sojourn.errors import BrokerFailed
from sojourn.files.private_files import PRIVATE_UMASK
from sojourn.spark.driver.jvm.child_process import ChildProcess
from sojourn.spark.driver.jvm.jars import Jars, resolve_jars
from sojourn.spark.driver.jvm.java import find_java
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.folder import Credentials, Folder, new_cluster
from sojourn.spark.driver.kafka.ports import HOST, answers, free_ports
from sojourn.spark.driver.kafka.topics import make_topics

# Another process may take a free port in the second or two before Java binds it.
_ATTEMPTS = 5
_TAKEN = "Address already in use"
_ANSWER_S, _LOOK_S = 10.0, 0.05
_GRACE_S = 10.0
_LOGGER = "-Dorg.slf4j.simpleLogger"
_OPTIONS = (
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",  # a faster start, and fast enough
    "-XX:+ExitOnOutOfMemoryError",
    f"{_LOGGER}.defaultLogLevel=warn",
    f"{_LOGGER}.showDateTime=true",
    f"{_LOGGER}.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
)


class Broker:
    """A broker process; a context manager that stops the broker on exit.

    *data*: folder of topics and records; without it they are lost when the broker stops.
    *port*: a free port if not given.
    *host*: the address of this machine at which clients connect.
    *properties*: broker configuration, which overrides Sojourn's own.
    *secured*: whether clients must authenticate.
    *patience_s*: time limit for the start.
    *inherits*: file descriptors that its watchdog keeps open until the broker exits.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        data: Path | None = None,
        port: int | None = None,
        host: str = HOST,
        properties: Mapping[str, str] | None = None,
        secured: bool = True,
        jars: Jars | None = None,
        patience_s: float = 120.0,
        inherits: Sequence[int] = (),
    ) -> None:
        self._data, self._wanted_port, self._jars = data, port, jars
        self._host = host
        self._properties = dict(properties or {})
        self._credentials = Credentials() if secured else None
        self._patience_s, self._inherits = patience_s, tuple(inherits)
        self._port = 0
        self._folder: Folder | None = None
        self._process: ChildProcess | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Host and port that clients connect to."""
        self._running()
        return f"{self._host}:{self._port}"

    @property
    def cluster(self) -> Cluster:
        """The address of the broker, with the credentials of clients."""
        return Cluster(
            self.bootstrap_servers,
            {} if self._credentials is None else self._credentials.for_clients,
        )

    @property
    def client_properties(self) -> Path:
        """A file with client properties for Kafka's own tools; only its owner can read it."""
        return self._running()[1].client_properties

    @property
    def client_settings(self) -> Path:
        """A JSON file with client settings for confluent-kafka; only its owner can read it."""
        return self._running()[1].client_settings

    @property
    def ended(self) -> bool:
        """Whether the broker was started and has exited unexpectedly."""
        return self._process is not None and self._process.status is not None

    @property
    def process_group(self) -> int:
        """Process group of the broker and its watchdog."""
        return self._running()[0].group

    def start(self) -> None:
        """Start the broker and wait until it answers. Raise `BrokerFailed` if it does not."""
        if self._process is not None:
            raise BrokerFailed("the broker is already running", "stop it first")
        try:
            path = self._data or Path(tempfile.mkdtemp(prefix="sojourn-broker-"))
            self._folder = Folder(path=path.absolute(), temporary=self._data is None)
            self._folder.check()
            self._start(self._folder, self._wanted_port)
        except BaseException:
            self.stop()
            raise

    def start_again(self) -> None:
        """Restart a broker that has exited, on the same port and data.

        Raise `BrokerFailed` if it does not answer; the call can then be retried.
        """
        _, folder = self._running()
        self.kill()
        try:
            self._start(folder, self._port)
        except BaseException:
            self.kill()  # it may still run without answering
            raise

    def kill(self) -> None:
        """Stop the process, and keep the data for `start_again`."""
        if self._process is not None:
            self._process.stop()

    def size_bytes(self, topics: Iterable[str]) -> int:
        folder = self._folder
        return 0 if folder is None else folder.size_bytes(topics)

    def create_topics(self, partitions: Mapping[str, int]) -> None:
        """Create missing topics, with the number of *partitions* of each."""
        make_topics(self.cluster.client(), partitions)

    def wait(self) -> None:
        """Wait until the broker exits, then raise `BrokerFailed`."""
        process, folder = self._running()
        raise _ended(process.wait(), folder)

    def stop(self) -> None:
        """Stop the broker, and remove a temporary folder; do nothing if it does not run."""
        self.kill()
        if self._folder is not None and self._folder.temporary:
            shutil.rmtree(self._folder.path, ignore_errors=True)
        self._process = self._folder = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _running(self) -> tuple[ChildProcess, Folder]:
        if self._process is None or self._folder is None:
            raise BrokerFailed("the broker is not running", "start it first")
        return self._process, self._folder

    def _start(self, folder: Folder, port: int | None) -> None:
        jars, java = self._jars or resolve_jars(), find_java()
        command = [str(java), *_OPTIONS, "-cp", os.pathsep.join(map(str, jars.broker))]
        left = _ATTEMPTS
        while True:
            left -= 1
            self._port, controller = free_ports(port, self._host)
            folder.configure(
                self._port, controller, self._credentials, self._properties, self._host
            )
            # only an empty folder is formatted: existing data keeps its cluster id
            cluster = folder.cluster or _formatted(folder, command)
            self._process = ChildProcess(
                [*command, "kafka.Kafka", folder.properties.name],
                folder=folder.path,
                log=folder.log,
                grace_s=_GRACE_S,
                temporary=folder.temporary,
                inherits=self._inherits,
                umask=PRIVATE_UMASK,
            )
            if self._answers(self._process, cluster):
                folder.tell_clients(self.cluster)
                return
            # the broker has exited: only a lost race for the port is worth another attempt
            if not left or _TAKEN not in folder.said():
                raise _ended(self._process.wait(), folder)
            self._process.stop()

    def _answers(self, process: ChildProcess, cluster: str) -> bool:
        """Return whether the broker is ready; False if it exited during the start."""
        deadline_s = time.monotonic() + self._patience_s
        while process.status is None:
            # another process may have taken the port, even another broker: compare cluster ids
            if answers(self._port, self._host) and _identity(self.cluster) == cluster:
                return True
            if time.monotonic() > deadline_s:
                raise BrokerFailed(
                    f"the broker did not answer within {self._patience_s:g} s",
                    "check the load on this machine",
                    self._running()[1].last_words(),
                )
            time.sleep(_LOOK_S)
        return False


def _identity(cluster: Cluster) -> str | None:
    """Return the id of a cluster; None while it is not ready."""
    try:
        told = cluster.client().list_topics(timeout=_ANSWER_S)
    except KafkaException:
        return None
    return told.cluster_id if told.brokers else None


def _formatted(folder: Folder, command: list[str]) -> str:
    """Format the folder for a new cluster, and return the id of the cluster."""
    cluster = new_cluster()
    with folder.log.open("ab") as log:
        done = subprocess.run(  # noqa: S603 - no shell, and our own arguments
            [
                *(*command, "kafka.tools.StorageTool", "format"),
                *("--cluster-id", cluster, "--config", folder.properties.name),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder.path,
            umask=PRIVATE_UMASK,
            check=False,
        )
    if done.returncode:
        raise _ended(done.returncode, folder)
    return cluster


def _ended(status: int, folder: Folder) -> BrokerFailed:
    log = "its log" if folder.temporary else str(folder.log)
    return BrokerFailed(
        f"the broker exited with status {status}", f"last lines of {log}:", folder.last_words()
    )

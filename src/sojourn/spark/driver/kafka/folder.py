"""The folder of a broker: configuration, credentials, log and data."""

import base64
import fcntl
import json
import secrets
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.errors import BadFile, BrokerFailed
from sojourn.files.private_files import FOLDER_MODE, make_folder, write_new
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.ports import HOST

_LOG_LINES = 8
_OWN = {"broker.log", "client.json", "client.properties", "data", "server.properties"}
# Relative to the folder: Kafka would misread a path with a comma or with non-Latin characters.
_DATA = "data"
_USER = "sojourn"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_MECHANISM = "PLAIN"
_PROTOCOL = "SASL_PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password of a broker; the password is never printed.

    Connections are not encrypted: on loopback only the superuser can capture traffic.

    >>> Credentials("secret")
    Credentials(user='sojourn')
    """

    password: str = field(repr=False, default_factory=lambda: secrets.token_urlsafe(32))
    user: str = _USER

    @property
    def for_clients(self) -> dict[str, str]:
        """Client options under librdkafka's names."""
        return {
            "security.protocol": _PROTOCOL,
            "sasl.mechanism": _MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    @property
    def for_broker(self) -> dict[str, str]:
        """Broker properties that require these credentials, on the controller port too."""
        known = f'{_MODULE} required username="{self.user}" password="{self.password}" '
        known += f'user_{self.user}="{self.password}";'
        return {
            "listener.security.protocol.map": f"{_PROTOCOL}:{_PROTOCOL},CONTROLLER:{_PROTOCOL}",
            "security.inter.broker.protocol": _PROTOCOL,
            "sasl.enabled.mechanisms": _MECHANISM,
            "sasl.mechanism.inter.broker.protocol": _MECHANISM,
            "sasl.mechanism.controller.protocol": _MECHANISM,
            f"listener.name.{_PROTOCOL.lower()}.plain.sasl.jaas.config": known,
            "listener.name.controller.plain.sasl.jaas.config": known,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The folder at *path*; a *temporary* one is removed with its broker."""

    path: Path
    temporary: bool

    @property
    def log(self) -> Path:
        """Warnings and errors of the broker."""
        return self.path / "broker.log"

    @property
    def properties(self) -> Path:
        """Configuration of the broker."""
        return self.path / "server.properties"

    @property
    def client_properties(self) -> Path:
        """The settings of Kafka's command-line tools, and of `sojourn --kafka-options`."""
        return self.path / "client.properties"

    @property
    def client_settings(self) -> Path:
        """The settings of librdkafka's clients, such as confluent-kafka, as a JSON object."""
        return self.path / "client.json"

    def check(self) -> None:
        """Create the folder if it is missing, with an empty log, readable by its owner only.

        Raise `BadFile` if it holds other files, `BrokerFailed` if another broker uses it.
        """
        try:
            make_folder(self.path)
            others = {found.name for found in self.path.iterdir()} - _OWN
            if others and self.cluster is None:
                problem = f"is not the data folder of a broker: it contains {min(others)}"
                raise BadFile(
                    str(self.path),
                    problem,
                    "choose an empty folder, or the data folder of a broker",
                )
            if self._in_use():
                raise BrokerFailed(
                    f"another broker uses {self.path}", "stop it, or name another folder"
                )
            self.path.chmod(FOLDER_MODE)  # an existing folder may be readable by others
            write_new(self.log, b"")
        except OSError as error:
            problem = f"cannot be used: {error.strerror}"
            raise BadFile(str(self.path), problem, "name another folder") from error

    @property
    def cluster(self) -> str | None:
        """Cluster id in the data; None before the folder is formatted."""
        try:
            lines = (self.path / _DATA / "meta.properties").read_text().splitlines()
        except OSError:
            return None
        known = dict(line.split("=", 1) for line in lines if "=" in line)
        return known.get("cluster.id")

    def configure(
        self,
        port: int,
        controller: int,
        credentials: Credentials | None,
        extra: Mapping[str, str],
        host: str = HOST,
    ) -> None:
        """Write the configuration of a single-node broker that listens on *host*.

        Without *credentials*, clients need not authenticate.
        """
        listener = "PLAINTEXT" if credentials is None else "SASL_PLAINTEXT"
        told = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": f"{listener}://{host}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"{listener}://{host}:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": _DATA,
            "auto.create.topics.enable": "false",  # a typo would create a topic
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **({} if credentials is None else credentials.for_broker),
        }
        _write(self.properties, told | dict(extra))

    def tell_clients(self, cluster: Cluster) -> None:
        """Write the client settings for Kafka's tools and for confluent-kafka."""
        _write(self.client_properties, cluster.for_tools)
        _write_text(self.client_settings, f"{json.dumps(cluster.for_clients, indent=2)}\n")

    def said(self) -> str:
        """Return the text of the log."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> tuple[str, ...]:
        """Return the last lines of the log, without stack traces."""
        lines = [line for line in self.said().splitlines() if line.strip()]
        return tuple(line for line in lines if not line[0].isspace())[-_LOG_LINES:]

    def size_bytes(self, topics: Iterable[str]) -> int:
        """Return the bytes that the records of *topics* take on disk."""
        return sum(
            _size_bytes(segment)
            for topic in topics
            # a topic name has no characters that are special in a glob
            for segment in (self.path / _DATA).glob(f"{topic}-[0-9]*/*.log")
            if segment.parent.name.removeprefix(f"{topic}-").isdigit()
        )

    def _in_use(self) -> bool:
        # Kafka locks this file while it runs; on Linux, Java's file locks are POSIX locks too
        lock_of_kafka = self.path / _DATA / ".lock"
        with suppress(FileNotFoundError), lock_of_kafka.open("r+b") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


def _write(path: Path, told: Mapping[str, str]) -> None:
    """Write properties, which may be secret."""
    _write_text(path, "".join(f"{name}={value}\n" for name, value in told.items()))


def _write_text(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # an existing file would keep its mode
    write_new(path, text.encode("ascii", "backslashreplace"))


def _size_bytes(path: Path) -> int:
    with suppress(OSError):  # Kafka may delete the segment meanwhile
        return path.stat().st_size
    return 0


def new_cluster() -> str:
    """Return a random cluster id, in Kafka's format."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text if text[0] != "-" else new_cluster()  # a leading "-" would make it an option

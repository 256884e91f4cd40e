"""The folder of a broker: its configuration, its log, its data."""

import base64
import fcntl
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sojourn.errors import BadFile, BrokerFailed
from sojourn.spark.ports import HOST

__all__ = ["Folder", "new_cluster"]

_LOG_LINES = 8
_OWN = {"broker.log", "data", "server.properties"}
# Relative to the folder: a name with a comma, or one that is not Latin, would be misread.
_DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The folder at *path*; a *temporary* one is gone with its broker."""

    path: Path
    temporary: bool

    @property
    def log(self) -> Path:
        """What the broker says: warnings and errors."""
        return self.path / "broker.log"

    @property
    def properties(self) -> Path:
        """What the broker is told."""
        return self.path / "server.properties"

    def check(self) -> None:
        """Make the folder if need be, with an empty log.

        Raise `BadFile` if it holds something else, `BrokerFailed` if a broker runs there.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = {found.name for found in self.path.iterdir()} - _OWN
            if others and self.cluster is None:
                problem = f"holds {min(others)} and no data of a broker"
                raise BadFile(str(self.path), problem, "name an empty folder, or a broker's")
            if self._in_use():
                raise BrokerFailed(
                    f"another broker uses {self.path}", "stop it, or name another folder"
                )
            self.log.write_bytes(b"")
        except OSError as error:
            problem = f"cannot be used: {error.strerror}"
            raise BadFile(str(self.path), problem, "name another folder") from error

    @property
    def cluster(self) -> str | None:
        """The id of the cluster whose data is here; None before it is formatted."""
        try:
            lines = (self.path / _DATA / "meta.properties").read_text().splitlines()
        except OSError:
            return None
        known = dict(line.split("=", 1) for line in lines if "=" in line)
        return known.get("cluster.id")

    def configure(self, port: int, controller: int, extra: Mapping[str, str]) -> None:
        """Write what the broker is told: one node, on this machine alone."""
        told = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": _DATA,
            "auto.create.topics.enable": "false",  # a slip in a name would make a topic
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        } | dict(extra)
        lines = "".join(f"{name}={value}\n" for name, value in told.items())
        self.properties.write_text(lines, encoding="ascii", errors="backslashreplace")

    def said(self) -> str:
        """Return all of the log."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> tuple[str, ...]:
        """Return the end of the log, without the places in Kafka's code."""
        lines = [line for line in self.said().splitlines() if line.strip()]
        return tuple(line for line in lines if not line[0].isspace())[-_LOG_LINES:]

    def _in_use(self) -> bool:
        lock_of_kafka = self.path / _DATA / ".lock"
        with suppress(FileNotFoundError), lock_of_kafka.open("r+b") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


def new_cluster() -> str:
    """Return an id for a cluster, as Kafka writes them."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text if text[0] != "-" else new_cluster()  # it would be taken for an option

"""How an application runs on Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sojourn.act.node_scaling import NodeBounds
from sojourn.errors import BadFile, BadInput
from sojourn.spark.agent.cores import core_use
from sojourn.spark.driver.master import LOCAL, Master, read_pair
from sojourn.spark.driver.state.folder_address import check_is_path
from sojourn.spark.wire.message_size import MOST_BYTES
from sojourn.text import shown

__all__ = ["SparkSettings", "read_client_options", "read_starting"]

# A message is never so small that it has no room for its headers and an error.
_FEWEST_BYTES = 20_000
# Spark's own bound for batches in real-time mode.
_SHORTEST_BATCH_S = 5.0
# Several heartbeats, so that one that is late costs no batch.
_SHORTEST_RELAY_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The settings of an application on Spark.

    - *servers*: the bootstrap servers of Kafka; None starts Sojourn's own broker
    - *kafka*: options of Kafka's clients, such as those for security
    - *state*: the folder for checkpoints, logs and the records of the own broker; None uses a
      temporary folder, and the next start begins without them. It is on a disk of the driver's
      machine
    - *shared_state*: the folder for what Spark's tasks write, which all nodes of a cluster have
      at the same path; None uses one within *state*
    - *starting*: where sources begin that were never read: earliest, latest, or a time in
      seconds since 1970
    - *skip_lost*: whether to resume behind records that Kafka has deleted before they were read
    - *batch_s*: the length of a batch, after which Spark commits its offsets
    - *kept_batches*: how many of its last commits Spark may lose in a power failure: so many
      batches before the last one can be resumed from
    - *relay_timeout_s*: how long a task of Spark may send no heartbeat to its host before its
      batch fails and runs again
    - *partitions*: of topics that are created; existing topics may have any number
    - *patience_s*: how long to wait while no broker answers before the application stops
    - *disk_patience_s*: how long to wait for room on a full disk before the application stops
    - *broker_port*: the port of the own broker; None chooses a free one
    - *broker_secured*: whether the own broker requires a password
    - *slots*: the tasks that Spark runs at once; None takes as many as needed, and spare ones
      for partitions that are added while it runs
    - *trace_per_s*: how many roots per second are traced; 0 traces none
    - *load*: points of time and rate by source, sent to the sources once the application runs;
      empty if others write to the topics
    - *master*, *spark*, *py_files*: where Spark runs, Spark's own settings, and code that is
      shipped to executors; see `sojourn.spark.driver.master.Master`
    - *min_nodes*, *max_nodes*, *processors_per_node*: how many executors there may be, and how
      many processors each should have; without *max_nodes* as many as Spark has
    - *node_calm_s*: for how long fewer nodes must do before one is given back; by default a
      minute, or longer where nodes take long to come
    - *encrypt*: whether connections between hosts and executors are encrypted, on a cluster
    """

    servers: str | None = None
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    state: Path | None = None
    shared_state: Path | None = None
    starting: str | float = "earliest"
    skip_lost: bool = False
    batch_s: float = 60.0
    kept_batches: int = 3
    relay_timeout_s: float = 10.0
    partitions: int = 1
    patience_s: float = 900.0
    disk_patience_s: float = 900.0
    broker_port: int | None = None
    broker_secured: bool = True
    slots: int | None = None
    trace_per_s: float = 100.0
    load: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    master: str = LOCAL
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    py_files: tuple[Path, ...] = ()
    encrypt: bool = False
    min_nodes: int = 1
    max_nodes: int | None = None
    processors_per_node: int | None = None
    node_calm_s: float | None = None

    def __post_init__(self) -> None:
        if not self.batch_s >= _SHORTEST_BATCH_S:
            raise BadInput(
                f"a batch of {shown(self.batch_s)} s is too short; write "
                f"{_SHORTEST_BATCH_S:g} s or more, the minimum of Spark"
            )
        if not self.relay_timeout_s >= _SHORTEST_RELAY_TIMEOUT_S:
            raise BadInput(
                f"a relay timeout of {shown(self.relay_timeout_s)} s is too short: tasks send "
                f"a heartbeat every second; write {_SHORTEST_RELAY_TIMEOUT_S:g} s or more"
            )
        for what, number in (
            ("a patience of {} s", self.patience_s),
            ("a patience of {} s for a full disk", self.disk_patience_s),
            ("a number of {} kept batches", self.kept_batches),
        ):
            if not number >= 0:
                raise BadInput(f"{what.format(shown(number))} is negative; write 0 or more")
        if self.broker_port is not None and self.servers is not None:
            raise BadInput(
                f"port {self.broker_port} is that of Sojourn's own broker, but servers are "
                f"{self.servers}; leave out one of them"
            )
        if isinstance(self.starting, str) and self.starting not in ("earliest", "latest"):
            raise BadInput(
                f"{shown(self.starting)} is not an offset to start at; "
                "write earliest, latest or a time"
            )
        self.most_bytes  # noqa: B018 - that it is a number is checked now
        for folder in filter(None, (self.state, self.shared_state)):
            check_is_path(folder)
        master = self.runs_on  # likewise that there can be such a master
        self.bounds(0)
        if self.max_nodes is not None and master.is_local:
            raise BadInput(
                f"max_nodes={self.max_nodes} needs a cluster, but master is {self.master}; "
                "leave it out, or choose the master of a cluster"
            )
        if self.encrypt and master.is_local:
            raise BadInput(
                f"encrypt needs a cluster, but master is {self.master}; leave it out, or "
                "choose the master of a cluster"
            )

    def bounds(self, tasks: int) -> NodeBounds:
        """Return how many nodes there may be, of which so many *tasks* take a slot for good.

        One slot of each executor starts its agent.
        """
        cores = self.runs_on.cores or 1
        return NodeBounds(
            least=max(self.min_nodes, -(-tasks // max(1, cores - 1))),
            most=self.max_nodes,
            processors=self.processors_per_node or cores,
            calm_s=self.node_calm_s,
        )

    @property
    def expected_cores(self) -> float:
        """The cores that processors will have, as far as that is known before a start."""
        each = self.runs_on.cores
        if each is None:
            return core_use().cores
        instances = self.spark.get("spark.executor.instances", "")
        asked = int(instances) if instances.isdecimal() else 1
        return float(each * (self.max_nodes or max(self.min_nodes, asked)))

    @property
    def runs_on(self) -> Master:
        """The master of Spark, checked."""
        return Master(url=self.master, spark=self.spark, py_files=self.py_files)

    @property
    def most_bytes(self) -> int:
        """The largest message, with key and headers, that Kafka's producer takes."""
        given = self.kafka.get("max.request.size", str(MOST_BYTES))
        if not given.isascii() or not given.isdigit() or int(given) < _FEWEST_BYTES:
            raise BadInput(
                f"max.request.size is {shown(given)}; write {_FEWEST_BYTES} or more bytes"
            )
        return int(given)


def read_client_options(texts: Iterable[str], file: Path | None) -> dict[str, str]:
    """Return the options in *file*, overridden by those in *texts*, `key=value`.

    A file has one per line; empty lines and those that begin with # are ignored.

    >>> read_client_options(["security.protocol=SSL"], None)
    {'security.protocol': 'SSL'}
    """
    given: dict[str, str] = {}
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "is not UTF-8"
            raise BadFile(str(file), f"cannot be read: {problem}", "check the path") from error
        for number, line in enumerate(lines, start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                given[f"{file}:{number}"] = line
    for number, text in enumerate(texts, start=1):
        given[f"--kafka-option number {number}"] = text
    return dict(
        read_pair(text, place, "security.protocol=SSL") for place, text in given.items()
    )


def read_starting(text: str) -> str | float:
    """Return earliest, latest, or the seconds since 1970 of a time with a time zone.

    >>> read_starting("latest"), read_starting("2026-01-31T12:00:00Z")
    ('latest', 1769860800.0)
    """
    if text in ("earliest", "latest"):
        return text
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            f"{shown(text)} is not a starting offset; write earliest, latest or a time such "
            "as 2026-01-31T12:00:00Z"
        ) from error
    if at.utcoffset() is None:
        raise BadInput(f"{text} has no time zone; write {text}Z")
    return at.timestamp()

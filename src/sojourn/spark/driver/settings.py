"""The settings of an application on Spark, validated."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sojourn.act.node_scaling import NodeBounds
from sojourn.errors import BadFile, BadInput
from sojourn.spark.agent.resources import core_use
from sojourn.spark.driver.master import LOCAL, Master, read_pair
from sojourn.spark.wire.record import MOST_BYTES
from sojourn.text import shown

# The smallest limit of messages: room for the headers and the error of a dead letter.
_FEWEST_BYTES = 20_000
# Spark's own minimum in real-time mode.
_SHORTEST_BATCH_S = 5.0
# Several heartbeats, so that one late heartbeat does not fail a batch.
_SHORTEST_RELAY_TIMEOUT_S = 3.0
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    servers: str | None = None
    """The bootstrap servers of Kafka; None starts Sojourn's own broker."""
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of Kafka's clients, such as those for security."""
    state: Path | None = None
    """The folder for checkpoints, logs and the records of the own broker.

    It must be on a local disk of the driver's machine. None uses a temporary folder, so the
    next start begins without a state.
    """
    shared_state: Path | None = None
    """The folder that Spark's tasks write to, at the same path on all nodes of a cluster.

    None uses a folder within *state*.
    """
    starting: str | float = "earliest"
    """The first offset of sources without commits: earliest, latest, or seconds since 1970."""
    skip_lost: bool = False
    """Whether to resume after records that Kafka has deleted before they were read."""
    batch_s: float = 60.0
    """The length of a batch, after which Spark commits its offsets."""
    kept_batches: int = 3
    """The batches before the last one that are kept to resume from.

    In a power failure Spark may lose as many of its last commits.
    """
    relay_timeout_s: float = 10.0
    """The longest time between heartbeats of a relay before its batch fails and is retried."""
    partitions: int = 1
    """The partitions of topics that are created; existing topics may have any number."""
    patience_s: float = 900.0
    """The longest time without an answer of a broker before the application stops."""
    disk_patience_s: float = 900.0
    """The longest wait for room on a full disk before the application stops."""
    broker_port: int | None = None
    """The port of the own broker; None chooses a free one."""
    broker_secured: bool = True
    """Whether the own broker requires a password."""
    slots: int | None = None
    """The tasks that Spark runs in parallel.

    None takes as many as needed, and spare ones for partitions that are added while it runs.
    """
    trace_per_s: float = 100.0
    """Roots traced per second; 0 traces none."""
    load: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Points of time and rate, by source, of records to send once the application runs.

    Empty if other producers write to the topics.
    """
    master: str = LOCAL
    """See `sojourn.spark.driver.master.Master`, as for *spark* and *py_files*."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    py_files: tuple[Path, ...] = ()
    encrypt: bool = False
    """Whether connections between hosts and executors are encrypted, on a cluster."""
    min_nodes: int = 1
    max_nodes: int | None = None
    """The most executors to request; None uses those that Spark has."""
    processors_per_node: int | None = None
    """The processors of each executor; None takes one per core."""
    node_calm_s: float | None = None
    """How long fewer nodes must suffice before one is given back.

    The default is a minute, or longer if nodes take long to start.
    """

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
        self.most_bytes  # noqa: B018 - raises if it is not a number
        for folder in filter(None, (self.state, self.shared_state)):
            _check_is_path(folder)
        master = self.runs_on  # raises if the master is invalid
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
        """Return the bounds for nodes, if *tasks* hold one slot each while queries run.

        One slot of each executor stays free to start its agent.
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
        """The cores that processors will have, as far as known before a start."""
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
        """The largest message, with key and headers, that Kafka's producer accepts."""
        given = self.kafka.get("max.request.size", str(MOST_BYTES))
        if not given.isascii() or not given.isdigit() or int(given) < _FEWEST_BYTES:
            raise BadInput(
                f"max.request.size is {shown(given)}; write {_FEWEST_BYTES} or more bytes"
            )
        return int(given)


def read_client_options(texts: Iterable[str], file: Path | None) -> dict[str, str]:
    """Return the options in *file*, overridden by those in *texts*, each `key=value`.

    A file has one option per line; empty lines and lines that begin with # are ignored.

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


def read_folder(text: str) -> Path:
    """Return the folder that *text* names, a path or `file:///PATH`.

    Raise `BadInput` of any other address.

    >>> read_folder("file:///shared/my%20orders").as_posix(), read_folder("orders").as_posix()
    ('/shared/my orders', 'orders')
    >>> read_folder("s3a://bucket/orders")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadInput: 's3a://bucket/orders' is not on a file system that supports ...
    """
    if not text.lower().startswith("file:"):
        path = Path(text)
        _check_is_path(path, text)
        return path
    address = urlsplit(text)
    if address.netloc not in ("", "localhost") or not address.path.startswith("/"):
        raise BadInput(f"{shown(text)} is not the address of a folder; write file:///PATH")
    return Path(unquote(address.path))


def _check_is_path(folder: Path, given: str | None = None) -> None:
    """Raise `BadInput` if *folder* is a URL of other storage; it shows the text *given*."""
    if _SCHEME.match(str(folder)):
        raise BadInput(
            f"{shown(given or str(folder))} is not on a file system that supports appending "
            "and locks; write the path of a folder on a disk"
        )

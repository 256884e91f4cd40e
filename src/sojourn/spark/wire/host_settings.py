"""The settings of a host, which the driver writes to its standard input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.app.operator import OnError
from sojourn.spark.wire.repetitions import ID_WINDOW

TOKEN = "SOJOURN_HOST_TOKEN"  # noqa: S105 - its name
"""The environment variable with the token by which a host authenticates to its controller."""
SECRET = "SOJOURN_RUN_SECRET"  # noqa: S105 - its name
"""The environment variable with the secret that peers on other machines must know."""
SOCKET = "relay.sock"
"""The Unix socket for relays, in the folder of a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The job of an operator, and its initial processors."""

    job: str
    """`package.module:factory`, called with *argument*."""
    argument: str = ""
    processors: int = 1
    on: Mapping[str, int] | None = None
    """Processors by node; None if all are beside the host."""
    on_error: OnError = field(default_factory=OnError)
    limit_s: float = 300.0
    """Time limit for a record."""
    set_up_limit_s: float = 300.0
    """Time limit for the set-up, which may load models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """The part that a host runs, and its connections.

    *readers*, *emits*, *leaving*, *everyone*, *inner*, *behind*, *stateful* and *nulls* make
    its `sojourn.spark.host.desk.part_graph.PartGraph`.
    """

    name: str
    """The part."""
    operators: Mapping[str, OperatorSettings]
    readers: Mapping[str, tuple[str, ...]]
    """Operators that read a stream, by stream."""
    emits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Streams that an operator writes to, by operator."""
    leaving: tuple[str, ...] = ()
    """Streams that leave the part through relays."""
    everyone: tuple[tuple[str, str], ...] = ()
    """Operators and the streams that are broadcast to all their processors."""
    inner: tuple[str, ...] = ()
    """Streams that are read without having been in a topic."""
    projected: tuple[str, ...] = ()
    """Inner streams that projections make from records of Kafka."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """The leaving stream that a projection behind the part reads, by projection."""
    stateful: tuple[str, ...] = ()
    """Operators with a state for each key."""
    nulls: tuple[str, ...] = ()
    """Operators that also read messages without a value."""
    reminded: Mapping[str, str] = field(default_factory=dict)
    """The name of the partition of its reminders in ids, by operator."""
    ttl_s: Mapping[str, float] = field(default_factory=dict)
    """When the state of a key expires, by operator."""
    folder: Path
    """Private folder with the socket for relays."""
    cuts: Path
    """Folder of cuts and spilled records."""
    logs: Path | None = None
    """Folder for the output of operators."""
    controller: Path = Path()
    """The socket of the controller."""
    temporary: Path | None = None
    """A folder to remove if the process that started the host was killed."""
    listens: int | None = None
    """File descriptor of a listening socket for other machines."""
    identity: Path | None = None
    """File with a TLS key and its certificate; None turns encryption off."""
    id_window: int = ID_WINDOW
    """The number of earlier ids in a partition that the id from a producer is compared with."""
    disk_patience_s: float = 900.0
    """How long to wait for space on a full disk."""
    kept_batches: int = 3
    """Batches before the last commit from which a start may resume."""
    relay_timeout_s: float = 10.0
    """After this time without a heartbeat a relay is lost, and its batch runs again."""

    @property
    def layout(self) -> str:
        """Identifies the graph that a log of open records depends on."""
        return repr((sorted(self.operators), dict(self.readers), self.leaving, self.stateful))

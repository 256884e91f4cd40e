"""What a host is told when it is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.app.operator import OnError
from sojourn.spark.wire.repetitions import ID_WINDOW

__all__ = ["SECRET", "SOCKET", "TOKEN", "HostSettings", "OperatorSettings"]

TOKEN = "SOJOURN_HOST_TOKEN"  # noqa: S105 - its name
"""The variable by which a host knows what to say to its controller."""
SECRET = "SOJOURN_RUN_SECRET"  # noqa: S105 - its name
"""The variable by which a host knows who may connect from other machines."""
SOCKET = "relay.sock"
"""Where relays reach a host, in its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """What the processors of an operator run, and how many there are at first.

    *job* is `package.module:factory`, called with *argument*. A record may take *limit_s*; a
    set-up, which loads models, *set_up_limit_s*. Where processors are not all here, *on* tells
    how many are on each node.
    """

    job: str
    argument: str = ""
    processors: int = 1
    on: Mapping[str, int] | None = None
    on_error: OnError = field(default_factory=OnError)
    limit_s: float = 300.0
    set_up_limit_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What the host of a part runs, and where it is reached.

    *readers*, *emits*, *leaving*, *everyone*, *inner*, *behind*, *stateful* and *nulls* are its
    graph's;
    *projected* are inner streams that projections make of what is read from Kafka. Roots of
    reminders are called as *reminded* says, and states expire after *ttl_s*, by operator.
    Relays connect to a socket in *folder*, which only the owner may enter; the controller
    listens at *controller*. Cuts are kept in the folder *cuts*, with what is spilled, and what
    operators print in *logs*. The folder *temporary* is removed by hosts if the process that
    started them was killed. The file descriptor *listens* is a socket for other machines; what
    is said there is encrypted if there is a file *identity*, with a key and its certificate.
    Ids that producers gave are compared with the last *id_window* of their partition.
    A host waits *disk_patience_s* for room on a full disk. A relay without a heartbeat for
    *relay_timeout_s* is lost, and its batch runs again. A start may resume from any of the last
    *kept_batches* before the one that was committed last.
    """

    name: str
    operators: Mapping[str, OperatorSettings]
    readers: Mapping[str, tuple[str, ...]]
    emits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaving: tuple[str, ...] = ()
    everyone: tuple[tuple[str, str], ...] = ()
    inner: tuple[str, ...] = ()
    projected: tuple[str, ...] = ()
    behind: Mapping[str, str] = field(default_factory=dict)
    stateful: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    reminded: Mapping[str, str] = field(default_factory=dict)
    ttl_s: Mapping[str, float] = field(default_factory=dict)
    folder: Path
    cuts: Path
    logs: Path | None = None
    controller: Path = Path()
    temporary: Path | None = None
    listens: int | None = None
    identity: Path | None = None
    id_window: int = ID_WINDOW
    disk_patience_s: float = 900.0
    kept_batches: int = 3
    relay_timeout_s: float = 10.0

    @property
    def layout(self) -> str:
        """What a log of open records depends on: who reads what, and who keeps a state."""
        return repr((sorted(self.operators), dict(self.readers), self.leaving, self.stateful))

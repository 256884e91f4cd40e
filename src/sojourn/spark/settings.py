"""How an application runs on Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.errors import BadInput
from sojourn.host.sizes import MOST_BYTES
from sojourn.topology.check import shown

__all__ = ["SparkSettings"]

# A message is never so small that it has no room for its headers and an error.
_FEWEST_BYTES = 20_000
# Spark's own bound for batches in real-time mode.
_SHORTEST_BATCH_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The settings of an application on Spark.

    - *servers*: the bootstrap servers of Kafka; None starts Sojourn's own broker
    - *kafka*: options of Kafka's clients, such as those for security
    - *state*: the folder for checkpoints, logs and the records of the own broker; None uses a
      temporary folder, and the next start begins without them
    - *starting*: where sources begin that were never read: earliest, latest, or a time in
      seconds since 1970
    - *batch_s*: the length of a batch, after which Spark commits its offsets
    - *carry_over*: whether records in service at the end of a batch are finished in the next
      one; if not, the next batch begins when they are done
    - *partitions*: of topics that are created; existing topics may have any number
    - *patience_s*: how long to wait while no broker answers before the application stops
    - *broker_port*: the port of the own broker; None chooses a free one
    - *broker_secured*: whether the own broker requires a password
    - *slots*: the tasks that Spark runs at once; None takes as many as needed, and spare ones
      for partitions that are added while it runs
    - *trace_per_s*: how many roots per second are traced; 0 traces none
    - *load*: points of time and rate by source, sent to the sources once the application runs;
      empty if others write to the topics
    """

    servers: str | None = None
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    state: Path | None = None
    starting: str | float = "earliest"
    batch_s: float = 60.0
    carry_over: bool = True
    partitions: int = 1
    patience_s: float = 900.0
    broker_port: int | None = None
    broker_secured: bool = True
    slots: int | None = None
    trace_per_s: float = 100.0
    load: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.batch_s >= _SHORTEST_BATCH_S:
            raise BadInput(
                f"a batch of {shown(self.batch_s)} s is too short; "
                f"write {_SHORTEST_BATCH_S:g} s or more, as Spark needs"
            )
        if not self.patience_s >= 0:
            raise BadInput(
                f"a patience of {shown(self.patience_s)} s is negative; write 0 or more"
            )
        if self.broker_port is not None and self.servers is not None:
            raise BadInput(
                f"port {self.broker_port} is for Sojourn's own broker, and servers are "
                f"{self.servers}; leave out one of them"
            )
        if isinstance(self.starting, str) and self.starting not in ("earliest", "latest"):
            raise BadInput(
                f"{shown(self.starting)} is not an offset to start at; "
                "write earliest, latest or a time"
            )
        self.most_bytes  # noqa: B018 - that it is a number is checked now

    @property
    def most_bytes(self) -> int:
        """The largest message, with key and headers, that Kafka's producer takes."""
        given = self.kafka.get("max.request.size", str(MOST_BYTES))
        if not given.isascii() or not given.isdigit() or int(given) < _FEWEST_BYTES:
            raise BadInput(
                f"max.request.size is {shown(given)}; write {_FEWEST_BYTES} or more bytes"
            )
        return int(given)

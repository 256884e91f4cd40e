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
    """What is chosen when an application starts.

    - *servers* of Kafka, with options for its clients in *kafka*; a broker of our own if None
    - *state* is the folder that keeps checkpoints, logs and the records of our own broker for
      the next start; if None nothing is kept
    - *starting* is where sources begin that were never read: earliest, latest, or a time in
      seconds since 1970
    - *batch_s* is how often what was done is committed
    - *carry_over*: what is in service when a batch ends goes over to the next one; else the
      next begins when all of it is done
    - *partitions* of topics that are made anew; those that are there may have any number
    - *patience_s* is how long the brokers may all be away before it gives up
    - *broker_port* is that of our own broker, which is chosen if None; one that is not
      *broker_secured* lets in everybody on this machine
    - *slots* are the tasks that Spark runs at once; if None as many as needed, and some for
      partitions that are added while it runs
    - *trace_per_s* is how many roots are followed in a second; 0 of none
    - *load* is sent to sources once all runs: points of time and rate, by source; none where
      others write to the topics
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
                f"batches of {shown(self.batch_s)} s; "
                f"Spark takes {_SHORTEST_BATCH_S:g} s or more"
            )
        if not self.patience_s >= 0:
            raise BadInput(f"patience of {shown(self.patience_s)} s; write 0 or more")
        if self.broker_port is not None and self.servers is not None:
            raise BadInput(
                f"a broker of its own at port {self.broker_port}, and others at "
                f"{self.servers}; leave out one of them"
            )
        if isinstance(self.starting, str) and self.starting not in ("earliest", "latest"):
            raise BadInput(
                f"{shown(self.starting)} is no place to start; write earliest, latest or a time"
            )
        self.most_bytes  # noqa: B018 - that it is a number is checked now

    @property
    def most_bytes(self) -> int:
        """The largest message, with key and headers, that Kafka's producer takes."""
        given = self.kafka.get("max.request.size", str(MOST_BYTES))
        if not given.isascii() or not given.isdigit() or int(given) < _FEWEST_BYTES:
            raise BadInput(
                f"max.request.size {shown(given)} is no size of messages; "
                f"write {_FEWEST_BYTES} or more bytes"
            )
        return int(given)

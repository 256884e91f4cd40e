"""The state of a node, in the reports of a host that its agent is connected to."""

import msgspec

__all__ = ["NodeState"]


class NodeState(msgspec.Struct, array_like=True, frozen=True):
    """The current state of a node; None is not known yet."""

    round_trip_s: float | None = None
    """The shortest recent round-trip time between host and node."""
    offset_s: float | None = None
    """How far the node's clock is ahead of the host's, known to half of the round-trip time."""
    used_bytes: int | None = None
    """Memory in use on the node."""
    limit_bytes: int | None = None
    """The memory limit of the node."""
    to: dict[str, int] = {}
    """Bytes sent to the node since it connected, by stream."""
    back: dict[str, int] = {}
    """Bytes received from it since it connected, by stream."""
    to_per_s: float = 0.0
    """Bytes recently sent per second."""
    back_per_s: float = 0.0
    """Bytes recently received per second."""
    kafka: str = ""
    """Why Kafka clients on the node do not reach the brokers quickly; empty if they do."""
    cores: float | None = None
    """Cores that processes on the node may use."""
    pool: str = ""
    """Identifies these cores: nodes with the same pool share them."""
    cpu_s: float | None = None
    """CPU seconds that all processes in the pool have used."""
    told_s: float = 0.0
    """When *cpu_s* was read, by the monotonic clock of the node."""

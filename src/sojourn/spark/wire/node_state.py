"""What a host knows of a node that its agent is connected from."""

import msgspec

__all__ = ["NodeState"]


class NodeState(msgspec.Struct, array_like=True, frozen=True):
    """How a node is at the moment; None is not known yet.

    Its clock is *offset_s* ahead of the host's, which is known to half of *round_trip_s*, the
    shortest time that a question and its answer lately took on their way. Of its memory
    *used_bytes* are in use, of at most *limit_bytes*. *to* it and *back* went so many bytes
    since it has connected, by stream, and lately so many per second. *kafka* is why clients
    there do not reach Kafka soon, if so. At *told_s* of its own steady clock *cpu_s* seconds
    were used of its *cores*, by all that is in the same *pool*.
    """

    round_trip_s: float | None = None
    offset_s: float | None = None
    used_bytes: int | None = None
    limit_bytes: int | None = None
    to: dict[str, int] = {}
    back: dict[str, int] = {}
    to_per_s: float = 0.0
    back_per_s: float = 0.0
    kafka: str = ""
    cores: float | None = None
    pool: str = ""
    cpu_s: float | None = None
    told_s: float = 0.0

"""Messages between a host and the controller, which runs in the driver."""

from collections.abc import Mapping

import msgspec

from sojourn.spark.wire.counters import PartTally


class HostHello(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The first message of a host."""

    name: str
    """The part of the host; likewise in all messages of hosts."""
    pid: int
    socket: str
    """Path of the Unix socket for relays on this machine."""
    token: str = ""
    """Proves that the controller has started this host."""


class Reached(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The number of ready processors of an operator has changed."""

    name: str
    operator: str
    processors: int
    """Processors that can take records."""
    missing: str = ""
    """Why there are fewer than requested; empty if there are not."""
    on: Mapping[str, int] = {}
    """Ready processors by node."""


class Report(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The answer to `Ask`: counters since the last report, and the status of the part."""

    name: str
    tally: PartTally


class Stopped(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A record failed at an operator whose error policy is to stop the application."""

    name: str
    operator: str
    position: str
    """Topic, partition and offset of the record."""
    reason: str


class Broken(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The host failed and ends."""

    name: str
    reason: str
    token: str = ""
    """As in `HostHello`: a host may fail before it has introduced itself."""


class AskTasks(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Ask for the number of tasks of a stage of Spark."""

    name: str
    stage: int


class TasksAre(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The answer to `AskTasks`."""

    stage: int
    number: int


class NodeIs(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A node has connected to the host, or was lost."""

    name: str
    node: str
    cores: float | None
    """None if the node was lost."""
    machine: str = ""
    """Name of the machine."""
    logs: str = ""
    """Folder on that machine with the output of processors."""
    silent: bool = False
    """Whether the node was lost by missing heartbeats, not by a closed connection."""


class TopicEnds(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The end offsets of topics."""

    ends: Mapping[str, Mapping[int, int]]
    """By topic and partition."""


class CheckNodes(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Let nodes check again whether they reach Kafka, because no records are read."""


class PlaceProcessors(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Set the processors of an operator."""

    operator: str
    on: dict[str, int]
    """Requested processors by node."""


class Ask(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Ask for a `Report`."""


class Drain(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """End the current batch once no record is open."""


class Measure(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Turn the measurement of times and the tracing of roots on or off."""

    on: bool


class Bye(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller shuts down cleanly, and removes its files itself."""


FromHost = HostHello | NodeIs | Reached | Report | AskTasks | Stopped | Broken
FromController = (
    PlaceProcessors | TasksAre | TopicEnds | CheckNodes | Ask | Drain | Measure | Bye
)

"""What a host and the controller say to each other."""

from collections.abc import Mapping

import msgspec

from sojourn.spark.wire.counters import PartTally

__all__ = [
    "Ask",
    "AskTasks",
    "Broken",
    "Bye",
    "CheckNodes",
    "Drain",
    "FromController",
    "FromHost",
    "Here",
    "Measure",
    "NodeIs",
    "PlaceProcessors",
    "Reached",
    "Report",
    "Stopped",
    "TasksAre",
    "TopicEnds",
]


class Here(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A host introduces itself to the controller; *token* shows that it is one of its own."""

    name: str
    pid: int
    socket: str
    token: str = ""


class Reached(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """So many processors can take records from now on; or why not as many as are wanted.

    *on* tells how many on each node.
    """

    name: str
    operator: str
    processors: int
    missing: str = ""
    on: Mapping[str, int] = {}


class Report(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """What happened since the last report."""

    name: str
    tally: PartTally


class Stopped(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The record at a *place* of a topic stops the application, at an operator."""

    name: str
    operator: str
    place: str
    reason: str


class Broken(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The host cannot go on."""

    name: str
    reason: str
    token: str = ""


class AskTasks(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The host wants to know how many tasks a stage of Spark has."""

    name: str
    stage: int


class TasksAre(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A stage of Spark has so many tasks."""

    stage: int
    number: int


class NodeIs(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A node has so many cores; None of one that is gone.

    Processors there print to files in the folder *logs* of the machine called *machine*. One
    that is *silent* has not closed its connection.
    """

    name: str
    node: str
    cores: float | None
    machine: str = ""
    logs: str = ""
    silent: bool = False


class TopicEnds(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Where the partitions of topics end."""

    ends: Mapping[str, Mapping[int, int]]


class CheckNodes(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Nodes should check again whether they reach Kafka: no records are read."""


class PlaceProcessors(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller wants so many processors of an operator *on* each node."""

    operator: str
    on: dict[str, int]


class Ask(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller wants a report."""


class Drain(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The batch should end when nothing is open any more."""


class Measure(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Whether times are taken and trees followed."""

    on: bool


class Bye(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller ends in order, and cleans up itself."""


FromHost = Here | NodeIs | Reached | Report | AskTasks | Stopped | Broken
FromController = (
    PlaceProcessors | TasksAre | TopicEnds | CheckNodes | Ask | Drain | Measure | Bye
)

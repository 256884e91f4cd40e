"""What a host and the controller say to each other."""

import msgspec

from sojourn.host.counting import HostTally

__all__ = [
    "Ask",
    "Broken",
    "Bye",
    "Drain",
    "FromController",
    "FromHost",
    "Here",
    "Measure",
    "Reached",
    "Report",
    "ScaleProcessors",
    "Stopped",
]


class Here(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A host introduces itself to the controller; *token* shows that it is one of its own."""

    name: str
    pid: int
    socket: str
    token: str = ""


class Reached(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """So many processors can take records from now on; or why not as many as are wanted."""

    name: str
    processors: int
    missing: str = ""


class Report(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """What happened since the last report."""

    name: str
    tally: HostTally


class Stopped(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The record at a *place* of a topic stops the application."""

    name: str
    place: str
    reason: str


class Broken(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The host cannot go on."""

    name: str
    reason: str
    token: str = ""


class ScaleProcessors(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller wants so many processors."""

    processors: int


class Ask(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller wants a report."""


class Drain(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Batches that have begun should end, and no other should be begun."""


class Measure(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Whether times are taken and trees followed."""

    on: bool


class Bye(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The controller ends in order, and cleans up itself."""


FromHost = Here | Reached | Report | Stopped | Broken
FromController = ScaleProcessors | Ask | Drain | Measure | Bye

"""What a host and the agent of a node say to each other."""

import msgspec

from sojourn.spark.wire.processor import Assignment, Done, NotReady, Ready, Waits

__all__ = [
    "AgentHello",
    "AskClock",
    "Assign",
    "CheckKafka",
    "ClockIs",
    "FromAgent",
    "Kill",
    "LetGo",
    "ProcessorDied",
    "ProcessorLost",
    "Said",
    "Start",
    "ToAgent",
    "Usage",
    "Welcome",
]


class AgentHello(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """An agent introduces itself: the name of its node, and how many cores that has.

    Its processors print to files in the folder *logs* of the machine called *machine*.
    """

    node: str
    cores: float
    pid: int
    machine: str = ""
    logs: str = ""


class Welcome(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A host tells what its operators run: a job and its argument, by name."""

    part: str
    operators: dict[str, tuple[str, str]]


class Start(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Start a processor."""

    operator: str
    number: int


class Assign(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Let a processor work on records."""

    operator: str
    number: int
    assignment: Assignment


class LetGo(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """End a processor that has nothing to do."""

    operator: str
    number: int


class Kill(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """End a processor whatever it does."""

    operator: str
    number: int
    reason: str


class Said(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor says something."""

    operator: str
    number: int
    message: Ready | NotReady | Done | Waits


class ProcessorLost(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor is gone, and it is not known yet why."""

    operator: str
    number: int


class ProcessorDied(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor is gone, or was not started: *starved* if the node has no room for it."""

    operator: str
    number: int
    reason: str
    starved: bool = False


class Usage(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The memory of processors in bytes, by operator and number; and that the node lives.

    Of the memory of the node *used_bytes* are in use, by whatever runs there, of at most
    *limit_bytes*. *kafka* is why clients there do not reach Kafka soon, if so.
    Its processes may use so many *cores*; all that shares these, the *pool*, has
    used *cpu_s* seconds of them, at *told_s* of the steady clock of the node.
    """

    memory: dict[str, dict[int, int]]
    used_bytes: int | None = None
    limit_bytes: int | None = None
    kafka: str = ""
    cores: float | None = None
    pool: str = ""
    cpu_s: float | None = None
    told_s: float = 0.0


class AskClock(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A host wants to know what time it is on the node, at *asked_s* of its own clock."""

    asked_s: float


class ClockIs(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A question was heard and its answer told at these times of the clock of the node."""

    asked_s: float
    heard_s: float
    told_s: float


class CheckKafka(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Check again whether clients on the node reach Kafka: no records are read."""


ToAgent = Welcome | Start | Assign | LetGo | Kill | AskClock | CheckKafka
FromAgent = AgentHello | Said | ProcessorLost | ProcessorDied | Usage | ClockIs

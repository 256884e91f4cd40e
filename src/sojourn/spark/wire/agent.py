"""Messages between a host and the agent of a node.

The agent connects and sends `AgentHello`; the host answers with `Welcome`. From then on the
host sends commands, and the agent forwards the messages of processors.
"""

import msgspec

from sojourn.spark.wire.processor import Assignment, Done, NotReady, Ready, Waits


class AgentHello(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The first message of an agent."""

    node: str
    cores: float
    """Cores of the node."""
    pid: int
    machine: str = ""
    """Name of the machine."""
    logs: str = ""
    """Folder on that machine with the output of processors."""


class Welcome(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The answer of a host to `AgentHello`."""

    part: str
    operators: dict[str, tuple[str, str]]
    """Job and argument of each operator."""


class Start(msgspec.Struct, tag=True, array_like=True, frozen=True):
    operator: str
    number: int


class Assign(msgspec.Struct, tag=True, array_like=True, frozen=True):
    operator: str
    number: int
    assignment: Assignment


class LetGo(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """End an idle processor."""

    operator: str
    number: int


class Kill(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Kill a processor, idle or not."""

    operator: str
    number: int
    reason: str


class Said(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A message of a processor, passed on by its agent."""

    operator: str
    number: int
    message: Ready | NotReady | Done | Waits


class ProcessorLost(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor is gone; the reason follows in `ProcessorDied`."""

    operator: str
    number: int


class ProcessorDied(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor is gone, or could not be started."""

    operator: str
    number: int
    reason: str
    starved: bool = False
    """Whether the node lacks memory, processes or open files for it."""


class Usage(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Resource usage of a node, sent every second: it is also the heartbeat of the agent."""

    memory: dict[str, dict[int, int]]
    """Bytes of each processor, by operator and number."""
    used_bytes: int | None = None
    """Memory in use on the node, by all processes there."""
    limit_bytes: int | None = None
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


class AskClock(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Ask for the time on the node."""

    asked_s: float
    """When the host sent this, by its own clock."""


class ClockIs(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The answer to `AskClock`, by the clock of the node but for *asked_s*."""

    asked_s: float
    """Copied from the question."""
    heard_s: float
    """When the question was received."""
    told_s: float
    """When this answer was sent."""


class CheckKafka(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Check again whether clients on the node reach Kafka, because no records are read."""


ToAgent = Welcome | Start | Assign | LetGo | Kill | AskClock | CheckKafka
FromAgent = AgentHello | Said | ProcessorLost | ProcessorDied | Usage | ClockIs

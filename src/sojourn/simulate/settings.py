"""Settings of a simulation in real time."""

from dataclasses import dataclass, field

from sojourn.simulate.nodes import NodeSettings
from sojourn.simulate.workload import Workload

__all__ = ["SimulatorSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    """Settings in addition to the topology: its *workload*, drawn from *seed*.

    A change pauses the operators that change for *pause_s*; one record in *sample_every* is
    timed. With *nodes* plans ask for nodes and give them back; otherwise there is one machine.
    """

    workload: Workload = field(default_factory=Workload)
    seed: int = 1
    pause_s: float = 0.0
    sample_every: int = 1
    nodes: NodeSettings | None = None

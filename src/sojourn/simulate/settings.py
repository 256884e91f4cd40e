"""Settings of a simulation in real time."""

from dataclasses import dataclass, field

from sojourn.simulate.nodes import NodeSettings
from sojourn.simulate.workload import Workload

__all__ = ["SimulatorSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    """Settings of the simulator in addition to the topology."""

    workload: Workload = field(default_factory=Workload)
    seed: int = 1
    """Seed of all random draws."""
    pause_s: float = 0.0
    """Pause of each operator that a plan changes."""
    sample_every: int = 1
    """One record in this many is timed."""
    nodes: NodeSettings | None = None
    """Nodes that plans can request and release; None simulates a single machine."""

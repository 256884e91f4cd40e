"""Engines for experiments: the simulator."""

from sojourn.engine import Engine
from sojourn.experiments.bench import Conditions
from sojourn.simulate.simulator import Simulator

__all__ = ["simulated"]


def simulated(conditions: Conditions) -> Engine:
    """Return a simulator under *conditions*, which times every record."""
    return Simulator(
        workload=conditions.workload,
        seed=conditions.seed,
        pause_s=conditions.pauses.otherwise_s,
        adding_pause_s=conditions.pauses.adding_s,
        sample_every=1,
    )

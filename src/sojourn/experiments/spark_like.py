"""Engines for experiments: the simulator, with what Spark has and without what it lacks.

What comes out differently on Spark than on the simulator may be Spark's doing, or that of the
conditions. This tells which.
"""

from collections.abc import Mapping
from dataclasses import replace

from sojourn.engine import Engine
from sojourn.experiments.bench import Conditions, EngineFactory
from sojourn.plan import Plan
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Workload
from sojourn.topology import Topology

__all__ = ["TRANSFER_S", "alike"]

TRANSFER_S = 0.005
"""What the way to an operator takes on Spark, more or less."""


def alike(faster: Mapping[str, float]) -> EngineFactory:
    """Return what makes simulators as like Spark's engines as can be.

    Nothing stands still, an operator has one queue, and the way to it takes as long as on
    Spark, where topologies are so many times as *faster* says, by name.
    """

    def engine(conditions: Conditions) -> Engine:
        return _Alike(replace(conditions.workload, dispatch={}), conditions.seed, faster)

    return engine


class _Alike(Simulator):
    def __init__(self, workload: Workload, seed: int, faster: Mapping[str, float]) -> None:
        super().__init__(workload=workload, seed=seed, sample_every=1)
        self._faster = faster

    def start(self, topology: Topology, plan: Plan) -> None:
        """Begin to run *topology*, with the way to operators that Spark has."""
        transfer_s = TRANSFER_S * self._faster[topology.name]
        operators = tuple(replace(o, transfer_s=transfer_s) for o in topology.operators)
        super().start(replace(topology, operators=operators), plan)

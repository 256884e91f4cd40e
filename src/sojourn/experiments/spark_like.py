"""Engines for experiments: the simulator under the conditions of Spark.

A result that differs between Spark and the simulator may be caused by Spark, or by the
conditions. This shows which.
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
"""The typical transfer time to an operator on Spark."""


def alike(faster: Mapping[str, float]) -> EngineFactory:
    """Return a factory of simulators that are as similar to Spark's engines as possible.

    Nothing pauses, an operator has one queue, and the transfer to it takes as long as on Spark,
    where topologies run *faster*, by name.
    """

    def engine(conditions: Conditions) -> Engine:
        return _Alike(replace(conditions.workload, dispatch={}), conditions.seed, faster)

    return engine


class _Alike(Simulator):
    def __init__(self, workload: Workload, seed: int, faster: Mapping[str, float]) -> None:
        super().__init__(workload=workload, seed=seed, sample_every=1)
        self._faster = faster

    def start(self, topology: Topology, plan: Plan) -> None:
        """Start *topology*, with the transfer times of Spark."""
        transfer_s = TRANSFER_S * self._faster[topology.name]
        operators = tuple(replace(o, transfer_s=transfer_s) for o in topology.operators)
        super().start(replace(topology, operators=operators), plan)

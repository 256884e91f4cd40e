"""Engines for experiments: the simulator, also under the conditions of Spark.

A result that differs between Spark and the simulator may be caused by Spark, or by the
conditions. `alike` shows which.
"""

from collections.abc import Mapping
from dataclasses import replace

from sojourn.decide.plan import Plan
from sojourn.engine import Engine
from sojourn.simulate.simulator import Simulator
from sojourn.topology import Topology
from sojourn_papers.experiments.application import wired
from sojourn_papers.experiments.bench import Conditions, EngineFactory

# The typical transfer time to an operator on Spark.
_TRANSFER_S = 0.005


def simulated(conditions: Conditions) -> Engine:
    """Return a simulator under *conditions*, which times every record."""
    return Simulator(
        workload=conditions.workload,
        seed=conditions.seed,
        pause_s=conditions.pauses.otherwise_s,
        adding_pause_s=conditions.pauses.adding_s,
        sample_every=1,
    )


def alike(faster: Mapping[str, float]) -> EngineFactory:
    """Return a factory of simulators that are as similar to Spark's engines as possible.

    Nothing pauses, an operator has one queue, and the transfer to it takes as long as on Spark,
    where topologies run *faster*, by name.
    """

    class Alike(Simulator):
        def start(self, topology: Topology, plan: Plan) -> None:
            """Start *topology*, with the transfer times of Spark."""
            super().start(wired(topology, _TRANSFER_S * faster[topology.name]), plan)

    def engine(conditions: Conditions) -> Engine:
        workload = replace(conditions.workload, dispatch={})
        return Alike(workload=workload, seed=conditions.seed, sample_every=1)

    return engine

"""Engines for experiments: the simulator."""

from sojourn.engine import Cost, Engine
from sojourn.experiments.bench import Conditions, Pauses
from sojourn.plan import Plan
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Workload

__all__ = ["simulated"]


def simulated(conditions: Conditions) -> Engine:
    """Return a simulator under *conditions*, which times every record."""
    return _Simulated(conditions.workload, conditions.seed, conditions.pauses)


class _Simulated(Simulator):
    """A simulator on which adding processors may cost more than removing them."""

    def __init__(self, workload: Workload, seed: int, pauses: Pauses) -> None:
        super().__init__(workload=workload, seed=seed, sample_every=1)
        self._pauses = pauses

    def apply(self, plan: Plan) -> Cost:
        """Change processors now; how long operators pause depends on what is done."""
        more = plan.processors > self.plan.processors
        self._pause_s = self._pauses.adding_s if more else self._pauses.otherwise_s
        return super().apply(plan)

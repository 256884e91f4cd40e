"""What experiments run on: a factory of engines, and a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sojourn.engine import Engine
from sojourn.simulate.workload import Workload
from sojourn_papers.experiments.application import Application
from sojourn_papers.experiments.machine_changes import MachinePool
from sojourn_papers.experiments.published_drs import EVERY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """How long operators that change are paused: with added processors, and without."""

    adding_s: float = 0.0
    otherwise_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions that an engine must provide.

    With a *pool*, an engine that has machines takes them from it, as its processors need them.
    """

    workload: Workload
    seed: int
    pauses: Pauses = field(default_factory=Pauses)
    pool: MachinePool | None = None


EngineFactory = Callable[[Conditions], Engine]
"""Makes an engine that is not started yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Engines of one kind, and the seed of all random numbers.

    To save time, a minute of the papers may be shortened to *minutes_s*, by the name of the
    topology, and repeated days to *days*. *on* names the engines in results, and *caveat* says
    what they do not provide; both are empty for the simulator. The results of engines of
    another kind, *beside*, are shown with each verdict.
    """

    engine: EngineFactory
    seed: int = 1
    minutes_s: Mapping[str, float] = field(default_factory=dict)
    days: int | None = None
    on: str = ""
    caveat: str = ""
    beside: EngineFactory | None = None

    def minute_s(self, application: Application) -> float:
        """Return the duration of a minute of the papers for *application*."""
        return self.minutes_s.get(application.topology.name, EVERY_S)

"""What experiments are run on: something that makes engines, and a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sojourn.engine import Engine
from sojourn.experiments.application import Application
from sojourn.experiments.published_drs import EVERY_S
from sojourn.simulate.workload import Workload

__all__ = ["Bench", "Conditions", "EngineFactory", "Pauses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """How long the operators that change stand still: with new processors, and without."""

    adding_s: float = 0.0
    otherwise_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What an engine has to bring about, whatever it is."""

    workload: Workload
    seed: int
    pauses: Pauses = field(default_factory=Pauses)


EngineFactory = Callable[[Conditions], Engine]
"""Makes an engine that is yet to be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Engines of one kind, and the seed that all chance derives from.

    Where time is dear, a minute of the papers lasts only *minutes_s* of some topologies, by
    their names, and what is run day after day at most *days*. *on* says what the engines are
    wherever results are shown, and *caveat* what they do not bring about; of the simulator
    there is nothing to say. What comes out on engines of another kind, *beside*, is told with
    each verdict.
    """

    engine: EngineFactory
    seed: int = 1
    minutes_s: Mapping[str, float] = field(default_factory=dict)
    days: int | None = None
    on: str = ""
    caveat: str = ""
    beside: EngineFactory | None = None

    def minute_s(self, application: Application) -> float:
        """Return how long a minute of the papers lasts for *application*."""
        return self.minutes_s.get(application.topology.name, EVERY_S)

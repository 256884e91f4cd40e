"""What experiments are run on: something that makes engines, and a seed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sojourn.engine import Engine
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
    """Engines of one kind, and the seed that all chance derives from."""

    engine: EngineFactory
    seed: int = 1

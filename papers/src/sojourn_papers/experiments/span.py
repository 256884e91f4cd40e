"""The time that an experiment takes on an engine, for engines in real time."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sojourn_papers.experiments import experiment, names
from sojourn_papers.experiments.application import Application
from sojourn_papers.experiments.machine_changes import MachinePool
from sojourn_papers.experiments.record import Experiment
from sojourn_papers.experiments.timeline import Schedule


@dataclass(frozen=True, slots=True)
class Span:
    """A number of *runs* of an application on each of its *days*, with one schedule.

    With a *pool*, they run on machines that come and go.
    """

    application: Application
    runs: int
    schedule: Schedule
    days: int = 1
    pool: MachinePool | None = None

    @property
    def records_per_s(self) -> float:
        """The most records that operators work on, all together."""
        topology = self.application.topology
        rates = [per_s for _, per_s in self.schedule.changes] or [topology.arrivals_per_s]
        return max(rates) / topology.arrivals_per_s * sum(topology.rates.values())


@runtime_checkable
class Spanned(Experiment, Protocol):
    """An experiment on re-allocation: it has a span, and uses `Bench.minute_s`.

    Others simulate hours to find small differences, or need no engine.
    """

    @property
    def spans(self) -> tuple[Span, ...]:
        """How long it takes, on one day."""
        ...


def reallocating() -> dict[str, Spanned]:
    """Return the experiments on re-allocation, which can be run where time really passes.

    >>> list(reallocating())
    ['drs15-fig9', 'drs15-fig10', 'drs17-fig8', 'drs17-fig9a', 'drs17-fig9b']
    """
    every = {name: experiment(name) for name in names()}
    return {name: one for name, one in every.items() if isinstance(one, Spanned)}

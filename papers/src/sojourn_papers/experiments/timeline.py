"""A run under a policy, minute by minute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sojourn.act.policy.base import Policy
from sojourn.decide.plan import Plan
from sojourn.engine import HasNodes
from sojourn.loop import ACTIVE, PASSIVE, Loop
from sojourn.report.panel import Series
from sojourn.simulate.workload import Rates
from sojourn_papers.experiments.application import Application
from sojourn_papers.experiments.bench import Bench, Conditions, Pauses
from sojourn_papers.experiments.machine_changes import (
    MachineChange,
    MachinePool,
    machine_changes,
)
from sojourn_papers.experiments.published_drs import EVERY_S
from sojourn_papers.experiments.record import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The minutes of a run: from minute *first* on DRS may act.

    *changes* of the load, if there are any, are minutes and the roots per second from then on.
    """

    minutes: int
    first: float = 0.0
    changes: Sequence[tuple[float, float]] = ()
    pauses: Pauses = field(default_factory=Pauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What was measured until *minute*: E[T], the mean completion, and the load."""

    minute: float
    mean_s: float
    completion_s: float
    per_s: float
    allocation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A re-allocation at *minute*."""

    minute: float
    kind: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run: its minutes, and what was changed.

    A minute lasted *minute_s*. *machines* are those that the engine added and removed;
    None if it has no machines.
    """

    minutes: tuple[Minute, ...]
    changes: tuple[Change, ...]
    machines: tuple[MachineChange, ...] | None = None
    minute_s: float = EVERY_S

    def changed(self, first: float) -> float:
        """Return when a change that was decided at *first* was complete, with its machines."""
        return max([first, *(each.at_s / self.minute_s for each in self.machines or ())])

    def between(self, after: float, until: float) -> list[Minute]:
        """Return the minutes that ended after *after*, up to *until*."""
        return [minute for minute in self.minutes if after < minute.minute <= until]

    def line(self, label: str, of: Literal["mean_s", "completion_s"] = "mean_s") -> Series:
        """Return a line through all minutes."""
        times_s = [getattr(minute, of) for minute in self.minutes]
        return Series(label=label, x=[minute.minute for minute in self.minutes], y=times_s)


def watch(
    bench: Bench,
    application: Application,
    start: tuple[int, ...],
    policy: Policy,
    schedule: Schedule,
    *,
    pool: MachinePool | None = None,
) -> Watched:
    """Return what happened in a run that was started with the processors *start*.

    With a *pool*, its machines come from there.
    """
    minute_s = bench.minute_s(application)
    workload = application.workload(minute_s * schedule.minutes, bench.seed)
    if schedule.changes:
        rates = Rates.steps(*((minute_s * at, per_s) for at, per_s in schedule.changes))
        streams = [arrival.name for arrival in application.topology.arrivals]
        workload = replace(workload, rates=dict.fromkeys(streams, rates))
    seen, changes = list[Minute](), list[Change]()
    conditions = Conditions(
        workload=workload, seed=bench.seed, pauses=schedule.pauses, pool=pool
    )
    with bench.engine(conditions) as engine:
        engine.start(application.running, Plan.here(application.allocation(*start)))
        bounds = pool.bounds if pool is not None and isinstance(engine, HasNodes) else None
        loop = Loop(engine, application.topology, policy, every_s=minute_s, bounds=bounds)
        for number in range(1, schedule.minutes + 1):
            loop.follow(policy, ACTIVE if number >= schedule.first else PASSIVE)
            episode = loop.turn()
            observation, decision = episode.observation, episode.decision
            seen.append(
                Minute(
                    minute=float(number),
                    mean_s=observation.mean_s,
                    completion_s=observation.completions.mean_s,
                    per_s=observation.arrivals_per_s,
                    allocation=str(decision.before),
                )
            )
            if episode.cost is not None and episode.cost.changed:
                changes.append(
                    Change(
                        minute=float(number),
                        kind=decision.kind,
                        before=str(decision.before),
                        after=str(decision.after),
                    )
                )
        machines = machine_changes(engine)
    return Watched(
        minutes=tuple(seen),
        changes=tuple(changes),
        machines=machines,
        minute_s=minute_s,
    )


def minutes_table(runs: Mapping[str, Watched]) -> Table:
    """Return the minutes of *runs* as rows."""
    return Table(
        ("run", "minute", "allocation", "per_s", "mean_s", "completion_s"),
        [
            (name, m.minute, m.allocation, m.per_s, m.mean_s, m.completion_s)
            for name, run in runs.items()
            for m in run.minutes
        ],
    )

"""Figure 10 of DRS-15: machines are added for a target that is missed, and removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from sojourn.act.best_effort_plan import Goal
from sojourn.decide.solution import NodeSize
from sojourn.decide.target import Target
from sojourn.report.panel import Mark, Panel
from sojourn_papers.experiments.application import Application, joined
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.machine_changes import MachinePool
from sojourn_papers.experiments.machine_steps import (
    Step,
    machine_line,
    machine_marks,
    machine_steps,
    with_machines,
)
from sojourn_papers.experiments.published_drs import Minutes, published
from sojourn_papers.experiments.record import About, Findings, Verdict
from sojourn_papers.experiments.span import Span
from sojourn_papers.experiments.timeline import Schedule, Watched, minutes_table, watch

# DRS-15 gives no w; DRS-17 has 3 and 6.
_WINDOW = 6
# The minutes of the change, and the one in which its backlog is worked off, do not count.
_DIGESTED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run with a target, started with too few machines or too many.

    In the minute of the change the mean was *cost_s* in the paper.
    """

    name: str
    target_s: float
    start: tuple[int, ...]
    end: tuple[int, ...]
    cost_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Runs in which DRS acts in whole machines."""

    about: About
    application: Application
    nodes: NodeSize
    most: int
    trials: tuple[Trial, Trial]
    schedule: Schedule

    def run(self, bench: Bench) -> Findings:
        """Return the minutes of all trials."""
        runs = {trial.name: self._watch(bench, trial) for trial in self.trials}
        steps = {
            trial.name: machine_steps(sum(trial.start), self.nodes, runs[trial.name])
            for trial in self.trials
        }
        verdicts, first = list[Verdict](), self.schedule.first
        for trial in self.trials:
            verdicts += [
                changed_at_once(trial, first, runs[trial.name]),
                as_many_as_needed(trial, self.nodes, steps[trial.name]),
                kept_after(trial, first, runs[trial.name]),
            ]
        costs_s = tuple(trial.cost_s for trial in self.trials)
        verdicts.append(adding_costs_more(first, *runs.values(), paper_s=costs_s))
        means = Panel(
            kind="lines",
            title=self.application.name,
            x_label="minute",
            y_label="mean, s",
            series=tuple(run.line(name) for name, run in runs.items()),
            levels={f"{trial.name} target": trial.target_s for trial in self.trials},
            marks=(Mark(first), *machine_marks(steps)),
        )
        numbers = Panel(
            kind="lines",
            title="machines",
            x_label="minute",
            y_label="machines",
            series=tuple(machine_line(name, steps[name], run) for name, run in runs.items()),
            marks=means.marks,
            whole=True,
        )
        return Findings(
            table=with_machines(minutes_table(runs), runs, steps),
            panels=(means, numbers),
            verdicts=tuple(verdicts),
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """How long it takes: a run for each trial."""
        return (Span(self.application, len(self.trials), self.schedule, pool=self.pool),)

    @property
    def pool(self) -> MachinePool:
        """Where machines come from."""
        return MachinePool(nodes=self.nodes, most=self.nodes.holding(self.most))

    def _watch(self, bench: Bench, trial: Trial) -> Watched:
        target = Target("mean", trial.target_s)
        goal = Goal(target=target, most=self.most, nodes=self.nodes, model="mmk")
        policy = published(goal, smooth=Minutes(_WINDOW))
        return watch(
            bench, self.application, trial.start, policy, self.schedule, pool=self.pool
        )


# -- verdicts -------------------------------------------------------------------------------


def changed_at_once(trial: Trial, first: float, run: Watched) -> Verdict:
    """Return whether the one change was the right one, and as early as could be."""
    start, end = joined(trial.start), joined(trial.end)
    told = [f"{c.before} → {c.after} at minute {c.minute:g}" for c in run.changes]
    return Verdict(
        point=f"{trial.name}: changes from {start} to {end} as early as possible, and stays",
        holds=told == [f"{start} → {end} at minute {first:g}"],
        numbers=", ".join(told) or "nothing was changed",
    )


def kept_after(trial: Trial, first: float, run: Watched) -> Verdict:
    """Return whether the target is kept after the change; before, whether more was needed.

    With a machine more it is to be kept stably, in every minute; with one less, by the
    average over a window, which is what DRS itself goes by.
    """
    before_s = fmean(m.mean_s for m in run.between(1, first))
    after_s = _digested_s(first, run)
    more = sum(trial.end) > sum(trial.start)
    window = 1 if more else min(_WINDOW, len(after_s))
    smooth_s = [
        fmean(after_s[start : start + window]) for start in range(len(after_s) - window + 1)
    ]
    missed = before_s > trial.target_s
    was = "missed before the change and met after it" if more else "met before and after"
    return Verdict(
        point=f"{trial.name}: the target of {1000 * trial.target_s:g} ms is {was}",
        holds=missed == more and max(smooth_s) < trial.target_s,
        numbers=(
            f"mean before: {1000 * before_s:.0f} ms; after: {1000 * fmean(after_s):.0f} ms, "
            f"{1000 * max(after_s):.0f} ms in the slowest minute"
        ),
    )


def as_many_as_needed(trial: Trial, nodes: NodeSize, steps: list[Step]) -> Verdict:
    """Return whether the machines became those that the processors need, in one step."""
    start, end = (nodes.holding(sum(each)) for each in (trial.start, trial.end))
    told = [
        f"{step.machines} from minute {step.minute:.3g} on{step.how and f' ({step.how})'}"
        for step in steps[1:]
    ]
    return Verdict(
        point=f"{trial.name}: {start} machines become {end}",
        holds=[step.machines for step in steps] == [start, end],
        numbers=", ".join(told) or f"{steps[0].machines} all the time",
    )


def adding_costs_more(
    first: float, adding: Watched, removing: Watched, *, paper_s: Sequence[float]
) -> Verdict:
    """Return whether both changes cost a minute or two, and adding machines the more."""
    after_s = [_digested_s(first, run) for run in (adding, removing)]
    up_s, down_s = (
        max((m.mean_s for m in run.between(first, first + 1)), default=0.0)
        for run in (adding, removing)
    )
    return Verdict(
        point="adding machines costs more than removing them; both cost only around the change",
        holds=up_s > down_s and all(max(times_s) < 2 * fmean(times_s) for times_s in after_s),
        numbers=(
            f"mean in the minute after adding: {1000 * up_s:.0f} ms (the paper: "
            f"{1000 * paper_s[0]:.0f} ms); after removing: {1000 * down_s:.0f} ms (the paper: "
            f"{1000 * paper_s[1]:.0f} ms)"
        ),
    )


def _digested_s(first: float, run: Watched) -> list[float]:
    """Return the means after the change; infinite if it was complete too late to tell."""
    digested = run.changed(first) + _DIGESTED
    return [m.mean_s for m in run.between(digested, run.minutes[-1].minute)] or [inf]

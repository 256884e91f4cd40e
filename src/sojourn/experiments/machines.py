"""Figure 10 of DRS-15: machines are added for a target that is missed, and given back."""

from dataclasses import dataclass
from statistics import fmean

from sojourn.act.aim import Goal
from sojourn.decide.nodes import Nodes
from sojourn.decide.target import Target
from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench, Conditions, Pauses
from sojourn.experiments.published_drs import Minutes, published
from sojourn.experiments.rebalancing import minutes_table
from sojourn.experiments.record import About, Findings, Verdict
from sojourn.experiments.span import Span
from sojourn.experiments.timeline import Watched, watch
from sojourn.report.panel import Mark, Panel, Series

__all__ = ["Machines", "Trial", "adding_costs_more", "changed_at_once", "kept_after"]

# DRS-15 gives no w; DRS-17 has 3 and 6.
_WINDOW = 6
# The minute of the change, and the one in which its backlog is worked off, do not count.
_DIGESTED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run with a target, started with too few machines or too many."""

    name: str
    target_s: float
    start: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def changes(self) -> tuple[str, str]:
        """The allocations before and after."""
        return ":".join(map(str, self.start)), ":".join(map(str, self.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Runs in which DRS may act from minute *first* on, in whole machines."""

    about: About
    application: Application
    nodes: Nodes
    most: int
    trials: tuple[Trial, Trial]
    first: int
    minutes: int = 27
    pauses: Pauses

    def run(self, bench: Bench) -> Findings:
        """Return the minutes of all trials."""
        runs = {trial.name: self._watch(bench, trial) for trial in self.trials}
        verdicts = list[Verdict]()
        for trial in self.trials:
            verdicts += [
                changed_at_once(trial, self.first, runs[trial.name]),
                kept_after(trial, self.first, runs[trial.name]),
            ]
        adding, removing = (runs[trial.name] for trial in self.trials)
        verdicts.append(adding_costs_more(self.first, adding, removing))
        lines = [
            Series(
                label=name,
                x=[m.minute for m in run.minutes],
                y=[m.mean_s for m in run.minutes],
            )
            for name, run in runs.items()
        ]
        panel = Panel(
            kind="lines",
            title=self.application.name,
            x_label="minute",
            y_label="mean, s",
            series=tuple(lines),
            levels={f"{trial.name} target": trial.target_s for trial in self.trials},
            marks=(Mark(float(self.first)),),
        )
        return Findings(table=minutes_table(runs), panels=(panel,), verdicts=tuple(verdicts))

    @property
    def spans(self) -> tuple[Span, ...]:
        """How long it takes: a run for each trial."""
        return (
            Span(
                application=self.application,
                runs=len(self.trials),
                minutes=self.minutes,
                pauses=self.pauses,
            ),
        )

    def _watch(self, bench: Bench, trial: Trial) -> Watched:
        minute_s = bench.minute_s(self.application)
        workload = self.application.workload(minute_s * self.minutes, bench.seed)
        engine = bench.engine(
            Conditions(workload=workload, seed=bench.seed, pauses=self.pauses)
        )
        goal = Goal(
            target=Target("mean", trial.target_s),
            most=self.most,
            nodes=self.nodes,
            model="mmk",
        )
        return watch(
            engine,
            self.application,
            self.application.allocation(*trial.start),
            published(goal, smooth=Minutes(_WINDOW)),
            minutes=self.minutes,
            active_from=self.first,
            minute_s=minute_s,
        )


# -- verdicts -------------------------------------------------------------------------------


def changed_at_once(trial: Trial, first: int, run: Watched) -> Verdict:
    """Return whether the one change was the right one, and as early as could be."""
    start, end = trial.changes
    told = [f"{c.before} → {c.after} at minute {c.minute:g}" for c in run.changes]
    return Verdict(
        point=f"{trial.name}: goes from {start} to {end} at the first chance, and stays",
        holds=told == [f"{start} → {end} at minute {first}"],
        numbers=", ".join(told) or "nothing was changed",
    )


def kept_after(trial: Trial, first: int, run: Watched) -> Verdict:
    """Return whether the target is kept after the change; before, whether more was needed.

    With a machine more it is to be kept stably, in every minute; with one less, by the
    average over a window, which is what DRS itself goes by.
    """
    before_s = fmean(m.mean_s for m in run.between(1, first))
    after_s = [m.mean_s for m in run.between(first + _DIGESTED, run.minutes[-1].minute)]
    more = sum(trial.end) > sum(trial.start)
    window = 1 if more else min(_WINDOW, len(after_s))
    smooth_s = [
        fmean(after_s[start : start + window]) for start in range(len(after_s) - window + 1)
    ]
    missed = before_s > trial.target_s
    was = "is missed before, and kept after" if more else "is kept before and after"
    return Verdict(
        point=f"{trial.name}: the target of {1000 * trial.target_s:g} ms {was}",
        holds=missed == more and max(smooth_s) < trial.target_s,
        numbers=(
            f"{1000 * before_s:.0f} ms before; after, {1000 * fmean(after_s):.0f} ms "
            f"and {1000 * max(after_s):.0f} ms in the slowest minute"
        ),
    )


def adding_costs_more(first: int, adding: Watched, removing: Watched) -> Verdict:
    """Return whether both changes cost a minute or two, and adding machines the more."""
    up_s, down_s = (_bump_s(first, run) for run in (adding, removing))
    return Verdict(
        point="adding machines costs more than giving them back, both only around the change",
        holds=up_s > down_s and all(_digested(first, run) for run in (adding, removing)),
        numbers=f"the minute after is at {1000 * up_s:.0f} ms and {1000 * down_s:.0f} ms",
    )


def _bump_s(first: int, run: Watched) -> float:
    return max((m.mean_s for m in run.between(first, first + 1)), default=0.0)


def _digested(first: int, run: Watched) -> bool:
    after_s = [m.mean_s for m in run.between(first + _DIGESTED, run.minutes[-1].minute)]
    return max(after_s) < 2 * fmean(after_s)

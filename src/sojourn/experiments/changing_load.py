"""Figure 9 of DRS-17: what the window does to the answer to loads that change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from sojourn.act.aim import Goal
from sojourn.decide.target import Target
from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench, Conditions, Pauses
from sojourn.experiments.published_drs import Minutes, published
from sojourn.experiments.rebalancing import minutes_table
from sojourn.experiments.record import About, Findings, Verdict
from sojourn.experiments.span import Span
from sojourn.experiments.timeline import Watched, watch
from sojourn.report.panel import Mark, Panel, Series
from sojourn.simulate.workload import Rates

__all__ = ["Changing", "Runs", "adding_costs_more", "answers", "first_step", "kinds"]

# The time between two events must be greater than T_ra: by so much of a minute.
_GREATER = 1 / 60
# One run is one day; what is claimed must be seen on most of them.
_MOST = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """Runs of an application whose load jumps at *changes*: (minute, roots per second).

    Each window of *windows* minutes is run *days* times, each with other chance; T_ra is as
    long as the window. *expected* are the kinds of re-allocations the paper saw with each.
    """

    about: About
    application: Application
    changes: tuple[tuple[float, float], ...]
    start: tuple[int, ...]
    target_s: float
    low_s: float
    minutes: int
    pauses: Pauses
    expected: Mapping[int, tuple[str, ...]]
    after: tuple[int, ...] = ()
    days: int = 20

    def run(self, bench: Bench) -> Findings:
        """Return all days with each window."""
        runs = {window: self._days(bench, window) for window in self.expected}
        verdicts = [kinds(window, self.expected[window], runs[window]) for window in runs]
        if self.after:
            before, after = (":".join(map(str, k)) for k in (self.start, self.after))
            verdicts += [
                *(first_step(window, before, after, runs[window]) for window in runs),
                *(answers(window, [at for at, _ in self.changes[1:3]], runs[window])
                  for window in runs),
                adding_costs_more([run for days in runs.values() for run in days]),
            ]  # fmt: skip
        first = {f"w = {window}": days[0] for window, days in runs.items()}
        return Findings(
            table=minutes_table(
                {
                    f"w = {window}, day {day}": run
                    for window, days in runs.items()
                    for day, run in enumerate(days, 1)
                }
            ),
            panels=tuple(self._lines(name, run) for name, run in first.items()),
            verdicts=tuple(verdicts),
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """How long a day takes: a run with each window."""
        return (
            Span(
                application=self.application,
                runs=len(self.expected),
                minutes=self.minutes,
                pauses=self.pauses,
                most_per_s=max(per_s for _, per_s in self.changes),
                days=self.days,
            ),
        )

    def _days(self, bench: Bench, window: int) -> list[Watched]:
        days = self.days if bench.days is None else min(self.days, bench.days)
        return [self._watch(bench, window, 1000 * bench.seed + day) for day in range(days)]

    def _watch(self, bench: Bench, window: int, seed: int) -> Watched:
        minute_s = bench.minute_s(self.application)
        steps = [(minute_s * minute, per_s) for minute, per_s in self.changes]
        rates = {a.name: Rates.steps(*steps) for a in self.application.topology.arrivals}
        workload = replace(self.application.workload(0.0, seed), rates=rates)
        engine = bench.engine(Conditions(workload=workload, seed=seed, pauses=self.pauses))
        policy = published(
            Goal(target=Target("mean", self.target_s), model="mmk"),
            smooth=Minutes(window, latest_load=True),
            t_ra_s=minute_s * (window + _GREATER),
            low_s=self.low_s,
        )
        return watch(
            engine,
            self.application,
            self.application.allocation(*self.start),
            policy,
            minutes=self.minutes,
            minute_s=minute_s,
        )

    def _lines(self, name: str, run: Watched) -> Panel:
        line = Series(
            label="first day",
            x=[m.minute for m in run.minutes],
            y=[m.completion_s for m in run.minutes],
        )
        start = ":".join(map(str, self.start))
        said = ", ".join(f"{c.after} at {c.minute:g}" for c in run.changes) or "no change"
        return Panel(
            kind="lines",
            title=f"{name}: {start}, {said}",
            x_label="minute",
            y_label="mean completion, s",
            series=(line,),
            levels={"T_max": self.target_s, "T_min": self.low_s},
            marks=tuple(Mark(change.minute) for change in run.changes),
            log_y=True,
        )


Runs = Sequence[Watched]
"""The days of one window."""


# -- verdicts -------------------------------------------------------------------------------


def kinds(window: int, expected: Sequence[str], runs: Runs) -> Verdict:
    """Return whether most days had just the re-allocations that the paper saw."""
    right = sum([c.kind for c in run.changes] == list(expected) for run in runs)
    return Verdict(
        point=f"w = {window}: re-allocations are {', '.join(expected) or 'none'}",
        holds=right >= _MOST * len(runs),
        numbers=f"on {right} of {len(runs)} days",
    )


def first_step(window: int, before: str, after: str, runs: Runs) -> Verdict:
    """Return whether most days began with the paper's first re-allocation."""
    steps = [(run.changes[0].before, run.changes[0].after) for run in runs if run.changes]
    right = sum(step == (before, after) for step in steps)
    return Verdict(
        point=f"w = {window}: the first goes from {before} to {after}",
        holds=right >= _MOST * len(runs),
        numbers=f"on {right} of {len(runs)} days",
    )


def answers(window: int, changed_at: Sequence[float], runs: Runs) -> Verdict:
    """Return whether it took about a window to answer each of these changes of the load."""
    waits = []
    for number, at in enumerate(changed_at):
        took = [run.changes[number].minute - at for run in runs if len(run.changes) > number]
        waits.append(median(took) if took else 0.0)
    return Verdict(
        point=f"w = {window}: the first two changes are answered in about {window} minutes",
        holds=all(window - 1 <= wait <= window + 2 for wait in waits),
        numbers=f"{' and '.join(f'{wait:g}' for wait in waits)} min, medians of all days",
    )


def adding_costs_more(runs: Runs) -> Verdict:
    """Return whether a minute in which processors are added is slower than one of removing.

    Of each run the first change of either kind counts: later ones come with a backlog.
    """
    costs: dict[str, list[float]] = {"up": [], "down": []}
    for run in runs:
        for kind, cost in costs.items():
            at = next((c.minute for c in run.changes if c.kind == kind), None)
            if at is not None:
                cost += [m.completion_s for m in run.between(at, at + 1)]
    up_s, down_s = (fmean(cost) if cost else 0.0 for cost in costs.values())
    return Verdict(
        point="the minute after adding processors is much slower than after removing some",
        holds=up_s > 2 * down_s > 0,
        numbers=f"{1000 * up_s:.0f} ms and {1000 * down_s:.0f} ms on average",
    )

"""Figure 9 of DRS-17: what the window does to the answer to loads that change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from sojourn.act.best_effort_plan import Goal
from sojourn.decide.target import Target
from sojourn.report.panel import Mark, Panel
from sojourn_papers.experiments.application import Application, joined
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.published_drs import Minutes, published
from sojourn_papers.experiments.record import About, Findings, Verdict
from sojourn_papers.experiments.span import Span
from sojourn_papers.experiments.timeline import Schedule, Watched, minutes_table, watch

# The time between two events must be greater than T_ra: by so much of a minute.
_GREATER = 1 / 60
# One run is one day; what is claimed must be seen on most of them.
_MOST = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """Runs of an application whose load changes.

    *expected* are the kinds of re-allocations the paper saw with each window, in minutes. Each
    is run on *days*, with other random numbers; T_ra is as long as the window. With *after*,
    the first allocation it changed to, the first changes are compared in detail.
    """

    about: About
    application: Application
    schedule: Schedule
    start: tuple[int, ...]
    target_s: float
    low_s: float
    expected: Mapping[int, tuple[str, ...]]
    after: tuple[int, ...] = ()
    days: int = 20

    def run(self, bench: Bench) -> Findings:
        """Return all days with each window."""
        days = self.days if bench.days is None else min(self.days, bench.days)
        seeded = [replace(bench, seed=1000 * bench.seed + day) for day in range(days)]
        runs = {w: [self._watch(one, w) for one in seeded] for w in self.expected}
        verdicts = [kinds(window, self.expected[window], runs[window]) for window in runs]
        if self.after:
            before, after = joined(self.start), joined(self.after)
            changed_at = [at for at, _ in self.schedule.changes[1:3]]
            verdicts += [first_step(w, before, after, every) for w, every in runs.items()]
            verdicts += [answers(w, changed_at, every) for w, every in runs.items()]
            verdicts.append(
                adding_costs_more([run for every in runs.values() for run in every])
            )
        return Findings(
            table=minutes_table(
                {
                    f"w = {window}, day {day}": run
                    for window, every in runs.items()
                    for day, run in enumerate(every, 1)
                }
            ),
            panels=tuple(self._lines(f"w = {w}", every[0]) for w, every in runs.items()),
            verdicts=tuple(verdicts),
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """How long a day takes: a run with each window."""
        return (Span(self.application, len(self.expected), self.schedule, self.days),)

    def _watch(self, bench: Bench, window: int) -> Watched:
        policy = published(
            Goal(target=Target("mean", self.target_s), model="mmk"),
            smooth=Minutes(window, latest_load=True),
            t_ra_s=bench.minute_s(self.application) * (window + _GREATER),
            low_s=self.low_s,
        )
        return watch(bench, self.application, self.start, policy, self.schedule)

    def _lines(self, name: str, run: Watched) -> Panel:
        said = ", ".join(f"{c.after} at {c.minute:g}" for c in run.changes) or "no change"
        return Panel(
            kind="lines",
            title=f"{name}: {joined(self.start)}, {said}",
            x_label="minute",
            y_label="mean completion, s",
            series=(run.line("first day", "completion_s"),),
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
        point=f"w = {window}: re-allocations: {', '.join(expected) or 'none'}",
        holds=right >= _MOST * len(runs),
        numbers=f"on {right} of {len(runs)} days",
    )


def first_step(window: int, before: str, after: str, runs: Runs) -> Verdict:
    """Return whether most days began with the paper's first re-allocation."""
    steps = [(run.changes[0].before, run.changes[0].after) for run in runs if run.changes]
    right = sum(step == (before, after) for step in steps)
    return Verdict(
        point=f"w = {window}: the first re-allocation is from {before} to {after}",
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
        point=f"w = {window}: the first two load changes are answered in about {window} min",
        holds=all(window - 1 <= wait <= window + 2 for wait in waits),
        numbers=f"after {' and '.join(f'{wait:g}' for wait in waits)} min (median of all days)",
    )


def adding_costs_more(runs: Runs) -> Verdict:
    """Return whether the minute after adding processors is slower than after removing some.

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
        numbers=(
            f"mean completion after adding: {1000 * up_s:.0f} ms; after removing: "
            f"{1000 * down_s:.0f} ms"
        ),
    )

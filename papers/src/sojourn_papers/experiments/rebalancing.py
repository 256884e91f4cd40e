"""Figure 9 of DRS-15, 8 of DRS-17: processors in the wrong place are moved at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from sojourn.act.best_effort_plan import Goal
from sojourn.report.panel import Mark, Panel
from sojourn_papers.experiments.application import Application, joined
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.published_drs import Minutes, published
from sojourn_papers.experiments.record import About, Findings, Verdict
from sojourn_papers.experiments.span import Span
from sojourn_papers.experiments.timeline import Schedule, Watched, minutes_table, watch

# DRS-15 gives no w; DRS-17 has 3 and 6.
_WINDOW = 6
# Before: without the first minutes, when queues are empty; after: once the change is digested.
_SETTLED = 2
# Clearly slower than the optimal start, and alike; how far a minute may stand out by chance.
_CLEAR, _ALIKE, _CHANCE = 0.1, 0.05, 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAllocations:
    """An application, its best allocation, and the others that it is started with in turn."""

    application: Application
    best: tuple[int, ...]
    others: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancing:
    """Three runs of each application.

    Before the first minute of the *schedule* DRS only recommends (DRS-15), or T_ra keeps it
    waiting (DRS-17): then *t_ra_minutes* is given. DRS predicts with *model*.
    """

    about: About
    starts: tuple[StartAllocations, ...]
    schedule: Schedule
    t_ra_minutes: float = 0.0
    model: str = "mmk"

    def run(self, bench: Bench) -> Findings:
        """Return the minutes of all runs."""
        verdicts, panels, everything = list[Verdict](), list[Panel](), dict[str, Watched]()
        first = self.schedule.first
        for start in self.starts:
            name, best = start.application.name, joined(start.best)
            runs = {
                joined(processors): self._watch(bench, start.application, processors)
                for processors in (*start.others, start.best)
            }
            verdicts += [
                moved_at_once(name, best, first, runs),
                recovered(name, best, first, runs),
                confined(name, best, runs),
            ]
            panel = Panel(
                kind="lines",
                title=name,
                x_label="minute",
                y_label="mean, s",
                series=tuple(run.line(f"started as {before}") for before, run in runs.items()),
                marks=(Mark(first),),
            )
            panels.append(panel)
            everything |= {f"{name} {processors}": run for processors, run in runs.items()}
        return Findings(
            table=minutes_table(everything), panels=tuple(panels), verdicts=tuple(verdicts)
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """How long it takes: for each application, a run with each start."""
        return tuple(
            Span(start.application, len(start.others) + 1, self.schedule)
            for start in self.starts
        )

    def _watch(
        self, bench: Bench, application: Application, processors: tuple[int, ...]
    ) -> Watched:
        goal = Goal(most=sum(processors), model=self.model)
        t_ra_s = bench.minute_s(application) * self.t_ra_minutes
        policy = published(goal, smooth=Minutes(_WINDOW), t_ra_s=t_ra_s)
        return watch(bench, application, processors, policy, self.schedule)


# -- verdicts -------------------------------------------------------------------------------


def moved_at_once(name: str, best: str, first: float, runs: Mapping[str, Watched]) -> Verdict:
    """Return whether each run had the best allocation from minute *first* on, and kept it."""
    told = []
    for start, run in runs.items():
        changes = [f"{c.after} at minute {c.minute:g}" for c in run.changes]
        wanted = [] if start == best else [f"{best} at minute {first:g}"]
        told.append((changes == wanted, f"{start}: {', '.join(changes) or 'unchanged'}"))
    point = f"{name}: sub-optimal starts change to {best} once, as early as possible"
    return Verdict.of(point, told)


def recovered(name: str, best: str, first: float, runs: Mapping[str, Watched]) -> Verdict:
    """Return whether sub-optimal starts got faster, and no slower than the optimal one.

    All runs have the same load, minute by minute: against the optimal start it is clear what
    is gained, whatever the load does.
    """
    last = next(iter(runs.values())).minutes[-1].minute
    begins = {start: _mean_s(run, _SETTLED, first) for start, run in runs.items()}
    ends = {start: _mean_s(run, first + _SETTLED, last) for start, run in runs.items()}
    others = [start for start in runs if start != best]
    apart = max(ends.values()) / min(ends.values()) - 1
    return Verdict(
        point=f"{name}: re-balancing clearly lowers the mean, and all runs end alike",
        holds=apart < _ALIKE
        and all(ends[start] < begins[start] for start in others)
        and all(begins[start] > (1 + _CLEAR) * begins[best] for start in others),
        numbers=(
            "; ".join(f"{start} {begins[start]:.3g} → {ends[start]:.3g} s" for start in runs)
            + f"; {apart:.1%} apart at the end"
        ),
    )


def confined(name: str, best: str, runs: Mapping[str, Watched]) -> Verdict:
    """Return whether the change slowed its minute down at most, and that not by much."""
    told = []
    for start, run in runs.items():
        if start == best or not run.changes:
            continue
        at = run.changes[0].minute
        level_s = _mean_s(run, at + _SETTLED, run.minutes[-1].minute)
        bump_s = _mean_s(run, at, at + 1)
        before_s = _mean_s(run, _SETTLED, at)
        later_s = max(m.mean_s for m in run.between(at + 1, run.minutes[-1].minute))
        numbers = (
            f"{start}: {before_s:.3g} s before, {bump_s:.3g} s in that minute, "
            f"at most {later_s:.3g} s after it"
        )
        little = later_s < _CHANCE * level_s and bump_s < _CHANCE * before_s
        told.append((little, numbers))
    point = f"{name}: a change costs little, and only in the minute after it"
    return Verdict.of(point, told or [(False, "nothing was changed")])


def _mean_s(run: Watched, after: float, until: float) -> float:
    return fmean(minute.mean_s for minute in run.between(after, until))

"""Figure 10 of DRS-17: bursts, which the extended model sees and the basic one does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn.report.panel import Panel, Series
from sojourn_papers.experiments.application import Application, joined
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.fixed_allocation import Fixed, fixed
from sojourn_papers.experiments.record import About, Findings, Table, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """Two allocations at two loads: the *simple* one and the *bursty* one.

    The basic model prefers *simple*; the extended model, and the measurement, *bursty*.
    """

    about: About
    applications: tuple[Application, Application]
    bursty: tuple[int, ...]
    simple: tuple[int, ...]
    lasts_s: float

    def run(self, bench: Bench) -> Findings:
        """Return what both allocations do at both loads."""
        runs = [
            [fixed(bench, one, k, self.lasts_s) for k in (self.bursty, self.simple)]
            for one in self.applications
        ]
        every = [run for load in runs for run in load]
        bursty, simple = joined(self.bursty), joined(self.simple)
        return Findings(
            table=Table.of(
                {
                    "per_s": run.per_s,
                    "allocation": run.name,
                    "measured_s": run.mean.value,
                    "half_width_s": run.mean.half_width,
                    "mmk_s": run.mmk_s,
                    "gigk_s": run.gigk_s,
                }
                for run in every
            ),
            panels=tuple(_panel(load) for load in runs),
            verdicts=(
                prefers("M/M/k", simple, every, lambda run: run.mmk_s),
                prefers("GI/G/k", bursty, every, lambda run: run.gigk_s),
                prefers("the measurement", bursty, every, lambda run: run.mean.value),
                closer(every),
                worse_with_load(every),
            ),
        )


def _panel(runs: Sequence[Fixed]) -> Panel:
    names = [run.name for run in runs]
    return Panel(
        kind="bars",
        title=f"{runs[0].per_s:g} frames/s",
        x_label="",
        y_label="mean, s",
        series=(
            Series(
                label="measured",
                x=names,
                y=[run.mean.value for run in runs],
                error=[run.mean.half_width for run in runs],
            ),
            Series(label="M/M/k", x=names, y=[run.mmk_s for run in runs]),
            Series(label="GI/G/k", x=names, y=[run.gigk_s for run in runs]),
        ),
    )


# -- verdicts -------------------------------------------------------------------------------


def prefers(
    who: str, expected: str, runs: Sequence[Fixed], mean_s: Callable[[Fixed], float]
) -> Verdict:
    """Return whether *expected* has the least mean at every load."""
    told = []
    for per_s in dict.fromkeys(run.per_s for run in runs):
        here = {run.name: mean_s(run) for run in runs if run.per_s == per_s}
        best = min(here, key=lambda name: here[name])
        means = ", ".join(f"{name} {mean:.3g} s" for name, mean in here.items())
        told.append((best == expected, f"at {per_s:g}/s {means}"))
    return Verdict.of(f"{who} prefers {expected}", told)


def closer(runs: Sequence[Fixed]) -> Verdict:
    """Return whether GI/G/k is nearer to every measurement, M/M/k being too low."""
    told = []
    for run in runs:
        mmk, gigk = run.mmk_s / run.mean.value - 1, run.gigk_s / run.mean.value - 1
        numbers = f"{run.name} at {run.per_s:g}/s: M/M/k {mmk:+.0%}, GI/G/k {gigk:+.0%}"
        told.append((mmk < 0 and abs(gigk) < abs(mmk), numbers))
    return Verdict.of("M/M/k underestimates; GI/G/k is closer in every case", told)


def worse_with_load(runs: Sequence[Fixed]) -> Verdict:
    """Return whether M/M/k underestimates more at the higher load."""
    ratios: dict[str, list[float]] = {}
    for run in sorted(runs, key=lambda run: run.per_s):
        ratios.setdefault(run.name, []).append(run.ratio)
    told = [
        (high > low, f"{name}: measured {low:.2f}, then {high:.2f} times the estimate")
        for name, (low, high) in ratios.items()
    ]
    return Verdict.of("M/M/k underestimates more at the higher load", told)

"""Figure 10 of DRS-17: bursts, which the extended model sees and the basic one does not."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench
from sojourn.experiments.fixed_allocation import fixed
from sojourn.experiments.record import About, Findings, Table, Verdict
from sojourn.measure.interval import Interval
from sojourn.model.network import mean_s
from sojourn.report.panel import Panel, Series

__all__ = ["Bar", "Extended", "closer", "prefers", "worse_with_load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What an allocation did at one load, and what both models say."""

    per_s: float
    allocation: str
    measured: Interval
    mmk_s: float
    gigk_s: float


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
        bars = [
            self._bar(bench, application, processors)
            for application in self.applications
            for processors in (self.bursty, self.simple)
        ]
        bursty, simple = (":".join(map(str, k)) for k in (self.bursty, self.simple))
        panels = [self._panel(application, bars) for application in self.applications]
        return Findings(
            table=Table(
                ("per_s", "allocation", "measured_s", "half_width_s", "mmk_s", "gigk_s"),
                [
                    (
                        b.per_s,
                        b.allocation,
                        b.measured.value,
                        b.measured.half_width,
                        b.mmk_s,
                        b.gigk_s,
                    )
                    for b in bars
                ],
            ),
            panels=tuple(panels),
            verdicts=(
                prefers("M/M/k", simple, {k: b.mmk_s for k, b in _keyed(bars).items()}),
                prefers("GI/G/k", bursty, {k: b.gigk_s for k, b in _keyed(bars).items()}),
                prefers(
                    "the measurement",
                    bursty,
                    {k: b.measured.value for k, b in _keyed(bars).items()},
                ),
                closer(bars),
                worse_with_load(bars),
            ),
        )

    def _bar(self, bench: Bench, application: Application, processors: tuple[int, ...]) -> Bar:
        allocation = application.allocation(*processors)
        topology = application.topology
        return Bar(
            per_s=topology.arrivals_per_s,
            allocation=":".join(map(str, processors)),
            measured=fixed(bench, application, allocation, self.lasts_s).mean,
            mmk_s=mean_s(topology, allocation, model="mmk"),
            gigk_s=mean_s(topology, allocation, model="gigk"),
        )

    def _panel(self, application: Application, bars: list[Bar]) -> Panel:
        per_s = application.topology.arrivals_per_s
        here = [bar for bar in bars if bar.per_s == per_s]
        names = [bar.allocation for bar in here]
        return Panel(
            kind="bars",
            title=f"{per_s:g} frames/s",
            x_label="",
            y_label="mean, s",
            series=(
                Series(
                    label="measured",
                    x=names,
                    y=[b.measured.value for b in here],
                    error=[b.measured.half_width for b in here],
                ),
                Series(label="M/M/k", x=names, y=[b.mmk_s for b in here]),
                Series(label="GI/G/k", x=names, y=[b.gigk_s for b in here]),
            ),
        )


def _keyed(bars: list[Bar]) -> dict[tuple[float, str], Bar]:
    return {(bar.per_s, bar.allocation): bar for bar in bars}


# -- verdicts -------------------------------------------------------------------------------


def prefers(who: str, expected: str, means_s: Mapping[tuple[float, str], float]) -> Verdict:
    """Return whether *expected* has the least mean at every load."""
    told, holds = [], True
    for per_s in dict.fromkeys(load for load, _ in means_s):
        here = {name: mean for (load, name), mean in means_s.items() if load == per_s}
        best = min(here, key=lambda name: here[name])
        holds = holds and best == expected
        told.append(
            f"at {per_s:g}/s "
            + ", ".join(f"{name} {mean:.3g} s" for name, mean in here.items())
        )
    return Verdict(point=f"{who} prefers {expected}", holds=holds, numbers="; ".join(told))


def closer(bars: list[Bar]) -> Verdict:
    """Return whether GI/G/k is nearer to every measurement, M/M/k being too low."""
    off = [
        (abs(b.mmk_s / b.measured.value - 1), abs(b.gigk_s / b.measured.value - 1))
        for b in bars
    ]
    return Verdict(
        point="M/M/k underestimates, and GI/G/k is closer every time",
        holds=all(gigk < mmk for mmk, gigk in off)
        and all(b.mmk_s < b.measured.value for b in bars),
        numbers="; ".join(
            f"{b.allocation} at {b.per_s:g}/s off by {mmk:.0%} and {gigk:.0%}"
            for b, (mmk, gigk) in zip(bars, off, strict=True)
        ),
    )


def worse_with_load(bars: list[Bar]) -> Verdict:
    """Return whether M/M/k underestimates more at the higher load."""
    ratios: dict[str, list[float]] = {}
    for bar in sorted(bars, key=lambda b: b.per_s):
        ratios.setdefault(bar.allocation, []).append(bar.measured.value / bar.mmk_s)
    return Verdict(
        point="M/M/k underestimates more at the higher load",
        holds=all(high > low for low, high in ratios.values()),
        numbers="; ".join(
            f"{name}: measured {low:.2f} and then {high:.2f} times the estimate"
            for name, (low, high) in ratios.items()
        ),
    )

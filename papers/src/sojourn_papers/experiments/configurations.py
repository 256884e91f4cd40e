"""Allocations beside the recommended one: whether it is the best, and the model says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot, nan
from typing import Literal

import numpy as np

from sojourn.decide.assign import assign
from sojourn.knowledge import allocation_text
from sojourn.measure.interval import Interval
from sojourn.report.panel import Panel, Series
from sojourn_papers.experiments.application import Application, joined
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.fixed_allocation import Fixed, fixed
from sojourn_papers.experiments.record import About, Findings, Table, Verdict

# What measurement and estimate may be apart for an estimate to count as accurate.
_ACCURATE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Six:
    """An application, the allocation the paper recommends, and those around it."""

    application: Application
    recommended: tuple[int, ...]
    others: tuple[tuple[int, ...], ...]
    lasts_s: float

    def measured(self, bench: Bench) -> list[Fixed]:
        """Return what each allocation does."""
        return [
            fixed(bench, self.application, processors, self.lasts_s)
            for processors in sorted((self.recommended, *self.others))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """Figure 6 of both papers: the recommended allocation has the least mean and deviation."""

    about: About
    sixes: tuple[Six, ...]

    def run(self, bench: Bench) -> Findings:
        """Return what every allocation did."""
        measured = {six.application.name: six.measured(bench) for six in self.sixes}
        verdicts = list[Verdict]()
        for six in self.sixes:
            name, best = six.application.name, joined(six.recommended)
            plan = assign(six.application.topology, sum(six.recommended), model="mmk")
            verdicts += [
                recommended(name, best, allocation_text(plan.allocation)),
                least("mean", name, best, measured[name]),
                least("standard deviation", name, best, measured[name]),
            ]
        return Findings(
            table=_table(measured),
            panels=tuple(_bars(name, each) for name, each in measured.items()),
            verdicts=tuple(verdicts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Figure 7 of both papers: estimated and measured means rise together.

    With *strict* the order must be the same throughout (DRS-15), otherwise they must be
    correlated and agree on the best (DRS-17). The first of *sixes* is the one with accurate
    estimates, the second the one with a network.
    """

    about: About
    sixes: tuple[Six, Six]
    strict: bool

    def run(self, bench: Bench) -> Findings:
        """Return what every allocation did beside what was estimated."""
        measured = {six.application.name: six.measured(bench) for six in self.sixes}
        together = in_order if self.strict else correlated
        precise, networked = measured
        return Findings(
            table=_table(measured),
            panels=tuple(_points(name, each) for name, each in measured.items()),
            verdicts=(
                *(together(name, each) for name, each in measured.items()),
                accurate(precise, measured[precise]),
                further_off(networked, measured[networked], precise, measured[precise]),
            ),
        )


# -- verdicts -------------------------------------------------------------------------------


def recommended(name: str, expected: str, advice: str) -> Verdict:
    """Return whether DRS recommends what it recommended in the paper."""
    return Verdict(
        point=f"{name}: DRS recommends {expected}",
        holds=advice == expected,
        numbers=f"Algorithm 1 recommends {advice}",
    )


def least(
    of: Literal["mean", "standard deviation"], name: str, best: str, measured: Sequence[Fixed]
) -> Verdict:
    """Return whether *best* has the least mean, or deviation, by more than chance."""
    values = {f.name: f.mean if of == "mean" else f.std for f in measured}
    here = values.pop(best)
    low, high = (end(values, key=lambda other: values[other].value) for end in (min, max))
    return Verdict(
        point=f"{name}: {best} has the least {of}, by more than chance",
        holds=all(surely_below(here, other) for other in values.values()),
        numbers=(
            f"{here} s; the others differ by {values[low].value / here.value - 1:+.1%} ({low}) "
            f"to {values[high].value / here.value - 1:+.1%} ({high})"
        ),
    )


def surely_below(one: Interval, other: Interval) -> bool:
    """Return whether *other* is higher by more than both may be off.

    >>> surely_below(Interval(1.0, 0.1), Interval(1.3, 0.1))
    True
    >>> surely_below(Interval(1.0, 0.1), Interval(1.1, 0.1))
    False
    """
    return other.value - one.value > hypot(one.half_width, other.half_width)


def in_order(name: str, measured: Sequence[Fixed]) -> Verdict:
    """Return whether no lower estimate went with a mean that was higher by more than chance."""
    pairs = list(combinations(sorted(measured, key=lambda f: f.mmk_s), 2))
    same = sum(low.mean.value < high.mean.value for low, high in pairs)
    wrong = [
        f"{low.name} before {high.name}"
        for low, high in pairs
        if surely_below(high.mean, low.mean)
    ]
    return Verdict(
        point=f"{name}: measured means rise with the estimates, except by chance",
        holds=not wrong and same > len(pairs) / 2,
        numbers=(
            f"{same} of {len(pairs)} pairs have the same order; "
            f"reversed by more than chance: {', '.join(wrong) or 'none'}"
        ),
    )


def correlated(name: str, measured: Sequence[Fixed]) -> Verdict:
    """Return whether estimates and means are correlated, and agree on the best."""
    estimated, did = zip(*((f.mmk_s, f.mean.value) for f in measured), strict=True)
    apart = np.std(estimated) * np.std(did) > 0
    r = float(np.corrcoef(estimated, did)[0, 1]) if apart else nan
    first = min(measured, key=lambda f: f.mmk_s).name
    best = min(measured, key=lambda f: f.mean.value).name
    return Verdict(
        point=f"{name}: estimates and measured means are correlated and agree on the best",
        holds=r > 0.8 and first == best,
        numbers=f"r = {r:.3f}; best by estimate {first}, by measurement {best}",
    )


def accurate(name: str, measured: Sequence[Fixed]) -> Verdict:
    """Return whether estimates are close, and on the low side."""
    ratios = [f.ratio for f in measured]
    return Verdict(
        point=f"{name}: estimates are accurate and slightly low",
        holds=min(ratios) > 1 - 0.01 and max(ratios) < 1 + _ACCURATE,
        numbers=_times_the_estimate(ratios),
    )


def further_off(
    name: str, measured: Sequence[Fixed], other: str, better: Sequence[Fixed]
) -> Verdict:
    """Return whether a network makes estimates worse than where there is none."""
    ratios = [f.ratio for f in measured]
    return Verdict(
        point=f"{name}: estimates are less accurate than those of {other}",
        holds=min(ratios) > max(f.ratio for f in better),
        numbers=_times_the_estimate(ratios),
    )


def _times_the_estimate(ratios: Sequence[float]) -> str:
    return f"measured means are {min(ratios):.2f} to {max(ratios):.2f} times the estimate"


# -- what is written ------------------------------------------------------------------------


def _table(measured: Mapping[str, Sequence[Fixed]]) -> Table:
    return Table.of(
        {
            "application": name,
            "allocation": f.name,
            "estimated_s": f.mmk_s,
            "mean_s": f.mean.value,
            "mean_half_width_s": f.mean.half_width,
            "std_s": f.std.value,
            "std_half_width_s": f.std.half_width,
        }
        for name, each in measured.items()
        for f in each
    )


def _bars(name: str, measured: Sequence[Fixed]) -> Panel:
    bars = Series(
        label="mean, and its standard deviation",
        x=[f.name for f in measured],
        y=[f.mean.value for f in measured],
        error=[f.std.value for f in measured],
    )
    return Panel(kind="bars", title=name, x_label="", y_label="seconds", series=(bars,))


def _points(name: str, measured: Sequence[Fixed]) -> Panel:
    points = Series(
        label="one allocation each",
        x=[f.mmk_s for f in measured],
        y=[f.mean.value for f in measured],
        error=[f.mean.half_width for f in measured],
    )
    return Panel(
        kind="points",
        title=name,
        x_label="estimated, s",
        y_label="measured, s",
        series=(points,),
        diagonal=True,
    )

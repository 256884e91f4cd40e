"""Allocations beside the recommended one: whether it is the best, and the model says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np

from sojourn.decide.assign import assign
from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench
from sojourn.experiments.fixed_allocation import Fixed, fixed
from sojourn.experiments.record import About, Findings, Table, Verdict
from sojourn.knowledge import allocation_text
from sojourn.model.network import mean_s
from sojourn.report.panel import Panel, Series

__all__ = [
    "Compared",
    "Configurations",
    "Estimates",
    "Six",
    "accurate",
    "calmest",
    "correlated",
    "fastest",
    "further_off",
    "in_order",
    "recommended",
]

# What measurement and estimate may be apart for an estimate to count as accurate.
_ACCURATE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Six:
    """An application, the allocation the paper recommends, and those around it."""

    application: Application
    recommended: tuple[int, ...]
    others: tuple[tuple[int, ...], ...]
    lasts_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What an allocation was estimated to do, and what it did."""

    estimated_s: float
    did: Fixed

    @property
    def name(self) -> str:
        """The allocation."""
        return allocation_text(self.did.allocation)

    @property
    def ratio(self) -> float:
        """How many times as long as estimated it took."""
        return self.did.mean.value / self.estimated_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """Figure 6 of both papers: the recommended allocation is the fastest and the calmest."""

    about: About
    sixes: tuple[Six, ...]

    def run(self, bench: Bench) -> Findings:
        """Return what every allocation did."""
        measured = {six.application.name: _compare(bench, six) for six in self.sixes}
        verdicts = list[Verdict]()
        for six in self.sixes:
            name, best = six.application.name, ":".join(map(str, six.recommended))
            verdicts += [
                recommended(name, best, _advice(six)),
                fastest(name, best, measured[name]),
                calmest(name, best, measured[name]),
            ]
        return Findings(
            table=_table(measured),
            panels=tuple(_bars(name, compared) for name, compared in measured.items()),
            verdicts=tuple(verdicts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Figure 7 of both papers: estimated and measured means go together.

    With *strict* the order must be the same throughout (DRS-15), otherwise they must be
    correlated and agree on the best (DRS-17). The first of *sixes* is the one with accurate
    estimates, the second the one with a network.
    """

    about: About
    sixes: tuple[Six, Six]
    strict: bool

    def run(self, bench: Bench) -> Findings:
        """Return what every allocation did beside what was estimated."""
        measured = {six.application.name: _compare(bench, six) for six in self.sixes}
        together = in_order if self.strict else correlated
        precise, networked = (six.application.name for six in self.sixes)
        return Findings(
            table=_table(measured),
            panels=tuple(_points(name, compared) for name, compared in measured.items()),
            verdicts=(
                *(together(name, compared) for name, compared in measured.items()),
                accurate(precise, measured[precise]),
                further_off(networked, measured[networked], precise, measured[precise]),
            ),
        )


def _compare(bench: Bench, six: Six) -> list[Compared]:
    application = six.application
    compared = []
    for processors in sorted((six.recommended, *six.others)):
        allocation = application.allocation(*processors)
        compared.append(
            Compared(
                estimated_s=mean_s(application.topology, allocation, model="mmk"),
                did=fixed(bench, application, allocation, six.lasts_s),
            )
        )
    return compared


def _advice(six: Six) -> str:
    plan = assign(six.application.topology, sum(six.recommended), model="mmk")
    return allocation_text(plan.allocation)


# -- verdicts -------------------------------------------------------------------------------


def recommended(name: str, expected: str, advice: str) -> Verdict:
    """Return whether DRS recommends what it recommended in the paper."""
    return Verdict(
        point=f"{name}: {expected} is recommended",
        holds=advice == expected,
        numbers=f"Algorithm 1 says {advice}",
    )


def fastest(name: str, best: str, compared: Sequence[Compared]) -> Verdict:
    """Return whether *best* has the least mean, by more than chance."""
    here = _named(compared, best).did.mean
    others = [c for c in compared if c.name != best]
    next_best = min(others, key=lambda c: c.did.mean.value)
    worst = max(others, key=lambda c: c.did.mean.value)
    return Verdict(
        point=f"{name}: {best} has the least mean, by more than chance",
        holds=all(here.surely_below(c.did.mean) for c in others),
        numbers=(
            f"{here} s; others from {next_best.did.mean.value / here.value - 1:+.1%} "
            f"({next_best.name}) to {worst.did.mean.value / here.value - 1:+.1%} ({worst.name})"
        ),
    )


def calmest(name: str, best: str, compared: Sequence[Compared]) -> Verdict:
    """Return whether *best* has the least standard deviation, by more than chance."""
    here = _named(compared, best).did.std
    others = [c for c in compared if c.name != best]
    next_best = min(others, key=lambda c: c.did.std.value)
    return Verdict(
        point=f"{name}: {best} has the least standard deviation, by more than chance",
        holds=all(here.surely_below(c.did.std) for c in others),
        numbers=f"{here} s; the next is {next_best.name}, {next_best.did.std} s",
    )


def in_order(name: str, compared: Sequence[Compared]) -> Verdict:
    """Return whether no lower estimate went with a mean that was higher by more than chance."""
    ranked = sorted(compared, key=lambda c: c.estimated_s)
    pairs = list(combinations(ranked, 2))
    same = sum(low.did.mean.value < high.did.mean.value for low, high in pairs)
    wrong = [
        f"{low.name} before {high.name}"
        for low, high in pairs
        if high.did.mean.surely_below(low.did.mean)
    ]
    beyond = f"beyond chance: {', '.join(wrong)}" if wrong else "none beyond chance"
    return Verdict(
        point=f"{name}: measured means rise with the estimates, but for chance",
        holds=not wrong and same > len(pairs) / 2,
        numbers=f"{same} of {len(pairs)} pairs in the same order; of the others {beyond}",
    )


def correlated(name: str, compared: Sequence[Compared]) -> Verdict:
    """Return whether estimates and means are correlated, and agree on the best."""
    estimated, did = zip(*((c.estimated_s, c.did.mean.value) for c in compared), strict=True)
    apart = np.std(estimated) * np.std(did) > 0
    r = float(np.corrcoef(estimated, did)[0, 1]) if apart else nan
    first = min(compared, key=lambda c: c.estimated_s)
    best = min(compared, key=lambda c: c.did.mean.value)
    return Verdict(
        point=f"{name}: estimates and means are correlated, and agree on the best",
        holds=r > 0.8 and first.name == best.name,
        numbers=f"r = {r:.3f}; estimated best {first.name}, measured best {best.name}",
    )


def accurate(name: str, compared: Sequence[Compared]) -> Verdict:
    """Return whether estimates are close, and on the low side."""
    ratios = [c.ratio for c in compared]
    return Verdict(
        point=f"{name}: estimates are accurate, slightly too low",
        holds=min(ratios) > 1 - 0.01 and max(ratios) < 1 + _ACCURATE,
        numbers=f"measured is {min(ratios):.2f} to {max(ratios):.2f} times the estimate",
    )


def further_off(
    name: str, compared: Sequence[Compared], other: str, better: Sequence[Compared]
) -> Verdict:
    """Return whether a network makes estimates worse than where there is none."""
    ratios = [c.ratio for c in compared]
    return Verdict(
        point=f"{name}: estimates are further off than those of {other}",
        holds=min(ratios) > max(c.ratio for c in better),
        numbers=f"measured is {min(ratios):.2f} to {max(ratios):.2f} times the estimate",
    )


def _named(compared: Sequence[Compared], name: str) -> Compared:
    return next(c for c in compared if c.name == name)


# -- what is written ------------------------------------------------------------------------


def _table(measured: Mapping[str, Sequence[Compared]]) -> Table:
    return Table(
        (
            "application",
            "allocation",
            "estimated_s",
            "mean_s",
            "mean_half_width_s",
            "std_s",
            "std_half_width_s",
        ),
        [
            (
                name,
                c.name,
                c.estimated_s,
                c.did.mean.value,
                c.did.mean.half_width,
                c.did.std.value,
                c.did.std.half_width,
            )
            for name, compared in measured.items()
            for c in compared
        ],
    )


def _bars(name: str, compared: Sequence[Compared]) -> Panel:
    bars = Series(
        label="mean, and its standard deviation",
        x=[c.name for c in compared],
        y=[c.did.mean.value for c in compared],
        error=[c.did.std.value for c in compared],
    )
    return Panel(kind="bars", title=name, x_label="", y_label="seconds", series=(bars,))


def _points(name: str, compared: Sequence[Compared]) -> Panel:
    points = Series(
        label="one allocation each",
        x=[c.estimated_s for c in compared],
        y=[c.did.mean.value for c in compared],
        error=[c.did.mean.half_width for c in compared],
    )
    return Panel(
        kind="points",
        title=name,
        x_label="estimated, s",
        y_label="measured, s",
        series=(points,),
        diagonal=True,
    )

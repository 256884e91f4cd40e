"""Blocks of measuring: their mean with its interval, and all of them as if they were one."""

from dataclasses import dataclass, replace
from functools import reduce
from math import inf, sqrt
from statistics import fmean, stdev

from scipy.stats import t as student

from sojourn.measure.aggregate import aggregate
from sojourn.measure.counters import merged, one_each
from sojourn.measure.report import Pull, RootReport
from sojourn.measure.sketch import Sketch

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A measured mean, and half the width of its 95 % confidence interval."""

    value: float
    half_width: float

    @property
    def low(self):
        """The lower end."""
        return self.value - self.half_width

    @property
    def high(self):
        """The upper end."""
        return self.value + self.half_width

    def in_ms(self):
        """Return it as text, in milliseconds."""
        return f"{1e3 * self.value:.1f} ±{1e3 * self.half_width:.1f}"


def interval(values, weights=None):
    """Return the mean of blocks, which are all but independent, with its interval.

    *weights* are the records in each: the mean is that of records.
    """
    values = list(values)
    weights = list(weights or [1] * len(values))
    mean = sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
    if len(values) < 2:
        return Interval(mean, inf)
    spread = stdev(values, xbar=fmean(values))
    quantile = float(student.ppf((1 + _CONFIDENCE) / 2, len(values) - 1))
    return Interval(mean, quantile * spread / sqrt(len(values)))


def latency(pulls):
    """Return the mean of what roots took, with its interval."""
    sums = [pull.roots.sums for pull in pulls if pull.roots.sums.number]
    return interval([each.mean_s for each in sums], [each.number for each in sums])


def pooled(pulls):
    """Return what one pull would have got of all these, which need not follow each other."""
    lasts_s = [pull.at_s - pull.since_s for pull in pulls]
    named = [{report.name: report for report in pull.operators} for pull in pulls]
    reports = (reduce(_both, (some[name] for some in named)) for name in named[0])
    busy = [(p.busy_cores, s) for p, s in zip(pulls, lasts_s, strict=True) if p.busy_cores]
    return Pull(
        since_s=0.0,
        at_s=sum(lasts_s),
        operators=tuple(
            replace(report, bin_s=sum(lasts_s) / len(report.arrivals)) for report in reports
        ),
        roots=_roots([pull.roots for pull in pulls]),
        cores=pulls[-1].cores,
        busy_cores=sum(b * s for b, s in busy) / sum(s for _, s in busy) if busy else None,
    )


def _both(first, later):
    """Return the report of an operator over two intervals."""
    return replace(
        later,
        processors=merged(
            (*one_each(first.processors).values(), *one_each(later.processors).values())
        ),
        arrivals=(*first.arrivals, *later.arrivals),
        counted_ratio=min(first.counted_ratio, later.counted_ratio),
        transfers=first.transfers + later.transfers,
        transfer_s=first.transfer_s + later.transfer_s,
        hottest=later.hottest or first.hottest,
        hottest_name=later.hottest_name or first.hottest_name,
        bytes={},
    )


def _roots(reports):
    return RootReport(
        entered=sum(report.entered for report in reports),
        completed=sum(report.completed for report in reports),
        completions=sum((report.completions for report in reports), Sketch.empty()),
        sums=sum((report.sums for report in reports), Sketch.empty()),
        streams={n: sum(r.streams[n] for r in reports) for n in reports[0].streams},
    )


def observation_of(pulls, topology):
    """Return what happened in all these pulls together."""
    pull = pooled(pulls)
    observation = aggregate(pull, topology, every_s=pull.at_s)
    if not observation.usable:
        raise SystemExit(f"what was measured is of no use: {observation.reason}")
    return observation


def without_transfers(topology):
    """Return *topology* with nothing on its wires: what is left is service and queueing."""
    return replace(
        topology, operators=tuple(replace(o, transfer_s=0.0) for o in topology.operators)
    )

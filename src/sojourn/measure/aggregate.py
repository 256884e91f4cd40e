"""Aggregation of processor counters into the observation of operators (DRS's measurer, IV-A).

- arrivals per second: all counted arrivals, over the time
- service and wait: the samples of all processors, pooled, without outliers
- CPU time: the CPU seconds of all processors, over the records they served
- variability of arrivals: the index of dispersion (variance over mean) of the counts in bins;
  for long bins it is the scv that a queue experiences, correlations included
"""

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sojourn.measure.counters import OperatorReport, ProcessorReport, one_each
from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.measure.report import BIN_SLACK, Pull, faults
from sojourn.topology import Topology

LEAST_BINS = 30
"""With n bins the relative standard error of the dispersion is √(2/(n-1)): 26 % for 30."""
LEAST_PER_BIN = 5
"""With fewer arrivals per bin every stream looks like Poisson, unless it arrives in batches."""

# A change of the load has at least this many bins before and after it, and explains more than
# this part of the variance. By chance that part is a fifth in 30 bins, and hardly ever a half.
_LEAST_SIDE, _MOST_BETWEEN = 3, 0.6

# A processor is an outlier if its mean differs from the median of all by more than this factor,
# up or down, and by more than this many standard errors.
_FAR = 10


def aggregate(
    pull: Pull, topology: Topology, *, every_s: float, last_s: float | None = None
) -> Observation:
    """Return the observation of the interval of *pull*; pulls are *every_s* apart.

    *last_s* is the end of the previous pull, if any. Invalid numbers do not raise: the
    observation is then not usable, and has the reason.

    While the application warms up, service times, transfer times and busy cores are left out,
    because they are not representative; the values known before are better.
    """
    for reason in faults(pull, topology, every_s=every_s, last_s=last_s):
        return Observation.unusable(pull.since_s, pull.at_s, reason)
    lasted_s = float(pull.at_s - pull.since_s)
    reports = {report.name: report for report in pull.operators}
    notes = [str(note) for note in pull.notes]
    operators = {name: _operator(reports[name], lasted_s, notes) for name in topology.operator}
    nodes = _nodes(pull, lasted_s)
    if pull.warming:
        none = Moments()
        operators = {
            name: replace(
                seen, service=none, longest_service_s=None, transfer=none, cpu_s=None,
                utilisation=None,
            )
            for name, seen in operators.items()
        }  # fmt: skip
    return Observation(
        since_s=pull.since_s,
        at_s=pull.at_s,
        notes=tuple(notes),
        operators=operators,
        arrivals_per_s=pull.roots.entered / lasted_s,
        completed_per_s=pull.roots.completed / lasted_s,
        streams={name: number / lasted_s for name, number in pull.roots.streams.items()},
        completions=pull.roots.completions,
        sums=pull.roots.sums,
        cores=_sum([node.cores for node in nodes.values()]) if nodes else _float(pull.cores),
        busy_cores=None
        if pull.warming
        else _sum([node.busy_cores for node in nodes.values()])
        if nodes
        else _float(pull.busy_cores),
        nodes=nodes,
        warming=bool(pull.warming),
        commits=int(pull.commits),
        node_costs=pull.node_costs,
    )


def _nodes(pull: Pull, lasted_s: float) -> dict[str, ObservedNode]:
    """Return the observation of each node, without its CPU use during warm-up."""
    found = {}
    for name, node in pull.nodes.items():
        here = {
            report.name: [p for p in one_each(report.processors).values() if p.node == name]
            for report in pull.operators
        }
        found[name] = ObservedNode(
            cores=float(node.cores),
            busy_cores=None if pull.warming else _float(node.busy_cores),
            running={operator: len(some) for operator, some in here.items() if some},
            computing={}
            if pull.warming
            else {
                operator: sum(float(processor.cpu_s) for processor in some) / lasted_s
                for operator, some in here.items()
                if some
            },
        )
    return found


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum, or None if one of the values is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def dispersion(counts: Sequence[int]) -> tuple[float | None, int]:
    """Return the variance over the mean of *counts* in bins, and the number of bins used.

    Neighbouring bins are joined as long as `LEAST_BINS` remain, because short bins show single
    gaps instead of bursts. The dispersion is None if there are fewer bins, or fewer than
    `LEAST_PER_BIN` arrivals per bin on average, or if the load changed in the interval, which
    is not a burst.

    >>> dispersion([4, 16] * 30)  # the bins are joined in pairs, and these are all alike
    (0.0, 30)
    >>> dispersion([4, 16] * 10)
    (None, 20)
    >>> dispersion([20] * 50 + [4] * 10)
    (None, 30)
    """
    joined = len(counts) // LEAST_BINS
    if joined == 0:
        return None, len(counts)
    bins = len(counts) // joined
    sums = np.array(counts[: bins * joined], np.float64).reshape(bins, joined).sum(axis=1)
    mean = float(sums.mean())
    if mean < LEAST_PER_BIN or _changed(sums):
        return None, bins
    return float(sums.var(ddof=1)) / mean, bins


def _changed(counts: NDArray[np.float64]) -> bool:
    """Return whether the mean of the counts changed at some bin.

    If so, most of the variance is the difference between the means before and after that bin.
    """
    number, total = len(counts), float(((counts - counts.mean()) ** 2).sum())
    if total == 0:
        return False
    before = np.arange(_LEAST_SIDE, number - _LEAST_SIDE + 1)
    off = np.cumsum(counts - counts.mean())[before - 1]
    between = off**2 * (1 / before + 1 / (number - before))
    return float(between.max()) > _MOST_BETWEEN * total


def _operator(report: OperatorReport, lasted_s: float, notes: list[str]) -> ObservedOperator:
    processors = tuple(one_each(report.processors).values())
    if len(processors) < len(report.processors):
        again = len(report.processors) - len(processors)
        notes.append(f"{report.name}: duplicate reports ignored ({again})")
    lost = 1.0
    if 0 < len(processors) < report.running:
        lost = report.running / len(processors)
        notes.append(
            f"{report.name}: {len(processors)} of {report.running} processors reported; "
            f"records served are scaled by {lost:.3g}"
        )
    if report.counted_ratio < 1:
        notes.append(
            f"{report.name}: arrivals were counted in {report.counted_ratio:.3g} of its "
            f"queues; they are scaled by {1 / report.counted_ratio:.3g}"
        )
    whole = floor(lasted_s / report.bin_s + BIN_SLACK)
    scv, bins = dispersion(report.arrivals[:whole]) if report.counted_ratio == 1 else (None, 0)
    kept = _without_outliers(report.name, processors, notes)
    service = Moments.total(map(_service, kept))
    served = lost * sum(float(processor.served) for processor in processors)
    time_s = report.running * lasted_s
    busy_s = None if service.mean_s is None else served * service.mean_s
    return ObservedOperator(
        name=report.name,
        wanted=report.wanted,
        running=report.running,
        backlog=report.backlog,
        arrivals_per_s=sum(map(float, report.arrivals)) / report.counted_ratio / lasted_s,
        served_per_s=served / lasted_s,
        served=served,
        service=service,
        wait=Moments.total(_moments(p.sampled, p.wait_s, p.wait_ss) for p in kept),
        arrival_scv=scv,
        bins=bins,
        utilisation=busy_s / time_s if busy_s is not None and time_s > 0 else None,
        cpu_s=_cpu_s(kept),
        longest_service_s=max((float(p.longest_service_s) for p in processors), default=0)
        or None,
        memory_bytes=sum(int(processor.memory_bytes) for processor in processors),
        bytes_per_s={stream: number / lasted_s for stream, number in report.bytes.items()},
        transfer=_moments(report.transfers, report.transfer_s),
        hottest=float(report.hottest),
        hottest_name=str(report.hottest_name),
        missing=str(report.missing),
        at_work=None if report.at_work is None else int(report.at_work),
    )


def _cpu_s(processors: Sequence[ProcessorReport]) -> float | None:
    """Return the mean CPU seconds of a record; None if not measured, or none was served."""
    served = sum(float(processor.served) for processor in processors)
    total_s = sum(float(processor.cpu_s) for processor in processors)
    return total_s / served if served > 0 and total_s > 0 else None


def _service(processor: ProcessorReport) -> Moments:
    return _moments(processor.sampled, processor.service_s, processor.service_ss)


def _moments(*counters: float) -> Moments:
    return Moments(*map(float, counters))  # numpy integers would overflow


def _without_outliers(
    operator: str, processors: Sequence[ProcessorReport], notes: list[str]
) -> list[ProcessorReport]:
    """Return the processors without outliers, and add a note for each outlier.

    The standard error is estimated from the processors near the median. If these are not the
    majority, it is not known which ones are right, and all are kept.
    """
    means = {p.processor: p.service_s / p.sampled for p in processors if p.sampled > 0}
    middle = median(means.values()) if len(means) >= 3 else 0.0
    if middle == 0:  # too few processors, or the clock is too coarse
        return list(processors)
    near = {
        who for who, mean in means.items() if middle <= _FAR * mean and mean <= _FAR * middle
    }
    if 2 * len(near) <= len(means):
        return list(processors)
    pooled = Moments.total(_service(p) for p in processors if p.processor in near)
    far = {
        p.processor
        for p in processors
        if p.processor in means.keys() - near
        and abs(means[p.processor] - middle)
        > _FAR * middle * ((pooled.scv or 0.0) / p.sampled) ** 0.5
    }
    notes.extend(
        f"{operator}: {who} is ignored: its mean service time is {means[who]:.3g} s, far from "
        f"the median of {middle:.3g} s"
        for who in sorted(far)
    )
    return [p for p in processors if p.processor not in far]

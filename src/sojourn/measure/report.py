"""A pull: all counters that an engine reports for one observation, and its faults.

Nothing is validated at construction. `aggregate` asks for the faults: the reasons why a pull is
not usable. A fault names the operator, or the clock, and the value. Each check relies on the
checks before it, so only the first fault is used.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import ceil

import numpy as np

from sojourn.measure.births import RootTimes
from sojourn.measure.counters import OperatorReport, ProcessorReport
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.sketch import Sketch
from sojourn.text import shown
from sojourn.topology import Topology

BIN_SLACK = 1e-3
"""Tolerance for the ends of an interval, as a part of a bin, because clocks round."""

# As in `sojourn.topology.check`: no real count or time is larger.
_MOST = 1e18
_SHORTEST_S = 1e-9
# Arrivals are divided by the part of the queues that was counted; a smaller part is an error.
_LEAST_RATIO = 1e-6
# If an interval is this many times as long as planned, the process was suspended.
_TOO_LONG = 3
# Sums of millions of floats are rounded; squares of very short times are 0.
_ROUNDING, _VANISHING = 1e-6, 1e-300
_NUMBERS = (int, float, np.integer, np.floating)
_SUMS = ("service_s", "service_ss", "wait_s", "wait_ss")
_COUNTERS = tuple(each.name for each in fields(ProcessorReport) if each.type is not str)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootReport:
    """The roots that entered and completed in the interval."""

    entered: int
    completed: int
    completions: Sketch = field(default_factory=Sketch.empty)
    """Completion of the traced roots: from entry until the whole tree is processed."""
    sums: Sketch = field(default_factory=Sketch.empty)
    """Sums of the sojourns of all records of a root's tree, for the traced roots."""
    streams: Mapping[str, int] = field(default_factory=dict)
    """Roots that entered by each stream, if known."""
    times: RootTimes = field(default_factory=RootTimes)
    """Births of the traced roots, completed and open, on the engine's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The cores of a node.

    Nodes that share cores, because they are on one machine, have equal parts of both figures.
    """

    cores: float
    busy_cores: float | None = None
    """CPU seconds per second of all processes on these cores, if known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pull:
    """All counters from *since_s* until *at_s*, on the engine's clock."""

    since_s: float
    at_s: float
    operators: tuple[OperatorReport, ...]
    roots: RootReport
    cores: float | None = None
    """Cores of the machine; None if not measured. A cluster reports them in `nodes`."""
    busy_cores: float | None = None
    """CPU seconds per second of all processes of the machine; None if not measured."""
    nodes: Mapping[str, NodeReport] = field(default_factory=dict)
    """The nodes of a cluster, in the order in which they get processors."""
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    warming: bool = False
    """Whether the application has just started: code is imported and compiled, and times are
    not representative."""
    commits: int = 0
    """Batches that ended in the interval; records waited for them."""
    notes: tuple[str, ...] = ()
    """Corrections that the engine made."""


def faults(
    pull: Pull, topology: Topology, *, every_s: float, last_s: float | None = None
) -> Iterator[str]:
    """Yield the faults of *pull*; pulls are *every_s* apart, the last one was at *last_s*."""
    yield from _clock(pull, every_s, last_s)
    yield from _names(pull, topology)
    yield from _machine(pull)
    for report in pull.operators:
        yield from _operator(report, pull.at_s - pull.since_s, pull.at_s)
    yield from _roots(pull.roots, topology)


def _wrong(value: object, most: float = _MOST) -> bool:
    """Return whether *value* is not a number from 0 to *most*."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return True
    return not 0 <= value <= most


def _clock(pull: Pull, every_s: float, last_s: float | None) -> Iterator[str]:
    for name, at_s in (("since_s", pull.since_s), ("at_s", pull.at_s)):
        if not isinstance(at_s, _NUMBERS) or not -_MOST <= at_s <= _MOST:
            yield f"the clock: {name} is {shown(at_s)}"
    lasted_s = pull.at_s - pull.since_s
    if not lasted_s >= _SHORTEST_S:
        yield f"the clock: the interval is from {pull.since_s} s to {pull.at_s} s"
    if last_s is not None and pull.since_s < last_s - BIN_SLACK * every_s:
        yield f"the clock jumped back from {last_s} s to {pull.since_s} s"
    if lasted_s > _TOO_LONG * every_s:
        yield f"the clock: the interval lasted {lasted_s:g} s instead of {every_s:g} s"


def _names(pull: Pull, topology: Topology) -> Iterator[str]:
    times = Counter(report.name for report in pull.operators)
    for name in topology.operator:
        if name not in times:
            yield f"{name}: the report is missing"
    for name, number in times.items():
        if name not in topology.operator:
            yield f"{name}: there is no such operator in {topology.name}"
        if number > 1:
            yield f"{name}: the operator was reported {number} times"


def _off(who: str, record: object, names: Iterable[str], most: float = _MOST) -> Iterator[str]:
    """Yield a fault for each field of *record* that is not a number from 0 to *most*."""
    for name in names:
        value = getattr(record, name)
        if _wrong(value, most):
            yield f"{who}: {name} is {shown(value)}"


def _machine(pull: Pull) -> Iterator[str]:
    known = [name for name in ("cores", "busy_cores") if getattr(pull, name) is not None]
    if pull.cores == 0:
        yield f"the machine: cores is {shown(pull.cores)}"
    yield from _off("the machine", pull, known)
    yield from _off("the engine", pull, ["commits"])
    for name, node in pull.nodes.items():
        if node.cores == 0:
            yield f"node {name}: cores is {shown(node.cores)}"
        told = ["cores"] if node.busy_cores is None else ["cores", "busy_cores"]
        yield from _off(f"node {name}", node, told)


def _operator(report: OperatorReport, lasted_s: float, at_s: float) -> Iterator[str]:
    name = report.name
    yield from _counters(report)
    if _wrong(report.bin_s) or not report.bin_s >= _SHORTEST_S:
        yield f"{name}: bin_s is {shown(report.bin_s)}"
    if len(report.arrivals) != max(1, ceil(lasted_s / report.bin_s - BIN_SLACK)):
        yield (
            f"{name}: {len(report.arrivals)} bins of {report.bin_s:g} s do not cover the "
            f"interval of {lasted_s:g} s"
        )
    for count in report.arrivals:
        if _wrong(count):
            yield f"{name}: {shown(count)} arrivals in a bin"
    yield from (
        f"{name}: {shown(number)} bytes in {stream}"
        for stream, number in report.bytes.items()
        if _wrong(number)
    )
    for processor in report.processors:
        yield from (f"{name}: {fault}" for fault in _processor(processor, at_s))
    if report.running and not report.processors:
        yield f"{name}: none of its {report.running} processors reported"


def _counters(report: OperatorReport) -> Iterator[str]:
    counters = ["wanted", "running", "backlog", "transfers", "transfer_s"]
    if report.at_work is not None:
        counters.append("at_work")
    yield from _off(report.name, report, counters)
    yield from _off(report.name, report, ["counted_ratio", "hottest"], most=1)
    if not report.counted_ratio >= _LEAST_RATIO:
        yield f"{report.name}: counted_ratio is {shown(report.counted_ratio)}"


def _processor(report: ProcessorReport, at_s: float) -> Iterator[str]:
    who = report.processor
    for counter in _COUNTERS:
        value = getattr(report, counter)
        if _wrong(value, _MOST**2 if counter.endswith("ss") else _MOST):
            yield f"{counter} of {who} is {shown(value)}"
    if report.sampled > report.served:
        yield f"{who} sampled {report.sampled} of {report.served} records"
    for total, squares in (_SUMS[:2], _SUMS[2:]):
        sum_s, sum_ss = float(getattr(report, total)), float(getattr(report, squares))
        if not _possible(report.sampled, sum_s, sum_ss):
            yield (
                f"{total} {sum_s:g} and {squares} {sum_ss:g} of {who} cannot be the sums of "
                f"{report.sampled} times"
            )
    # the longest service time is at least the root of the mean square
    longest_s = (float(report.service_ss) / max(1, report.sampled)) ** 0.5
    if longest_s > at_s * (1 + BIN_SLACK) > 0:
        yield f"{who} served a record for {longest_s:g} s, but the clock is at {at_s:g} s"


def _possible(number: int, sum_s: float, sum_ss: float) -> bool:
    """Return whether *number* times of 0 or more can have these sums (Cauchy-Schwarz)."""
    if number == 0:
        return sum_s == 0 and sum_ss == 0
    least, most = sum_s * sum_s / number, sum_s * sum_s
    return least * (1 - _ROUNDING) - _VANISHING <= sum_ss <= most * (1 + _ROUNDING) + _VANISHING


def _roots(roots: RootReport, topology: Topology) -> Iterator[str]:
    yield from _off("roots", roots, ["entered", "completed"])
    for which, sketch in (("completions", roots.completions), ("sums", roots.sums)):
        if _wrong(sketch.sum_s) or _wrong(sketch.sum_ss, _MOST**2):
            yield f"roots: the sum of {which} is {sketch.sum_s} s, of squares {sketch.sum_ss}"
        if (sketch.filled < 0).any() or sketch.number > roots.completed:
            yield f"roots: {sketch.number} {which}, but {roots.completed} completed"
    yield from _times(roots.times)
    if not roots.streams:
        return
    for name, entered in roots.streams.items():
        if _wrong(entered):
            yield f"roots: {shown(entered)} entered by {name}"
    odd = roots.streams.keys() ^ {arrival.name for arrival in topology.arrivals}
    if odd:
        yield f"roots: the stream {min(odd)} is missing, or not in {topology.name}"
    total = sum(map(float, roots.streams.values()))
    if total != roots.entered:
        yield f"roots: {roots.entered} entered, but the sum over streams is {total:.17g}"


def _times(times: RootTimes) -> Iterator[str]:
    completed = (times.birth_s, times.completion_s, times.sum_s, times.weight)
    if len({len(values) for values in completed}) > 1:
        yield "roots: the numbers of their births and completions differ"
    for births_s in (times.birth_s, times.open_birth_s):
        for birth_s in births_s[~np.isfinite(births_s)]:
            yield f"roots: a birth is {shown(float(birth_s))}"

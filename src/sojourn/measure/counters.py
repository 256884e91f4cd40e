"""Counters of processors and operators, reported by hosts and the simulator.

All counters cover the interval *between* two pulls. Reports come from other machines and are
not validated here; `aggregate` validates them, and names the one that is wrong. This module
must not import numpy, because each host imports it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

# The counters that add up; memory is a current value.
_COUNTERS = ("served", "sampled", "service_s", "service_ss", "wait_s", "wait_ss", "cpu_s")


@dataclass(slots=True, kw_only=True)
class ProcessorReport:
    """The counters of one processor: records served, and the times of one record in Nₘ.

    It is mutable because a host counts every record here. It must not change once it is sent.

    >>> report = ProcessorReport(processor="split-1")
    >>> report.count(service_s=0.3, wait_s=0.1, cpu_s=0.2)
    >>> report.count(service_s=0.5, wait_s=0.0, cpu_s=0.2)
    >>> report.served, report.service_s, report.service_ss, report.longest_service_s
    (2, 0.8, 0.34, 0.5)
    """

    processor: str
    served: int = 0
    sampled: int = 0
    """Number of records that were timed."""
    service_s: float = 0.0
    service_ss: float = 0.0
    """Sum of squared service times, in s²."""
    wait_s: float = 0.0
    wait_ss: float = 0.0
    """Sum of squared waits, in s²."""
    cpu_s: float = 0.0
    """CPU time of all records served; 0 if not measured."""
    longest_service_s: float = 0.0
    """Longest service time of a record; 0 if not measured."""
    memory_bytes: int = 0
    """Memory at the end of the interval; 0 if not measured."""
    node: str = ""
    """The node on which it runs, on a cluster."""

    def count(self, *, service_s: float, wait_s: float, cpu_s: float) -> None:
        """Add one served and timed record."""
        self.served += 1
        self.sampled += 1
        self.service_s += service_s
        self.service_ss += service_s * service_s
        self.wait_s += wait_s
        self.wait_ss += wait_s * wait_s
        self.cpu_s += cpu_s
        if service_s > self.longest_service_s:  # noqa: PLR1730 - a call for each record less
            self.longest_service_s = service_s

    def __add__(self, later: "ProcessorReport") -> "ProcessorReport":
        counted = {name: getattr(self, name) + getattr(later, name) for name in _COUNTERS}
        return replace(
            later,
            **counted,
            longest_service_s=max(self.longest_service_s, later.longest_service_s),
            node=later.node or self.node,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorReport:
    """The counters of the processors of an operator, and its arrivals in bins of time."""

    name: str
    wanted: int
    """Number of processors that should run."""
    running: int
    processors: tuple[ProcessorReport, ...]
    arrivals: tuple[int, ...]
    """Arrivals per bin. Bins start with the interval; only the last one may be shorter."""
    bin_s: float
    backlog: int
    """Waiting records at the end of the interval."""
    counted_ratio: float = 1.0
    """Share of the operator's queues whose arrivals are counted; below 1 if one is lost."""
    bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes read from or written to each stream."""
    transfers: int = 0
    """Records that found an idle processor."""
    transfer_s: float = 0.0
    """Total wait of these records: the time of their transfer."""
    hottest: float = 0.0
    """Share of the most frequent key among records read by key; 0 if none are."""
    hottest_name: str = ""
    """The most frequent key, if known."""
    missing: str = ""
    """The reason why wanted processors do not start."""
    at_work: int | None = None
    """Processors with records at the end of the interval; None if not measured."""


def sooner(report: ProcessorReport, by_s: float) -> ProcessorReport:
    """Return *report* with the wait of each record shorter by *by_s*, but not below 0.

    >>> told = ProcessorReport(
    ...     processor="p", served=2, sampled=2, service_s=0.2, service_ss=0.02,
    ...     wait_s=11.0, wait_ss=61.0,
    ... )  # 5 s and 6 s
    >>> sooner(told, 5.0).wait_s, sooner(told, 5.0).wait_ss
    (1.0, 1.0)
    """
    if by_s == 0 or report.sampled == 0:
        return report
    number = report.sampled
    wait_s = max(0.0, report.wait_s - number * by_s)
    squares = report.wait_ss - 2 * by_s * report.wait_s + number * by_s * by_s
    # whatever the error, the sums must be possible for some times
    return replace(
        report, wait_s=wait_s, wait_ss=min(wait_s**2, max(wait_s**2 / number, squares))
    )


def merged(reports: Iterable[ProcessorReport]) -> tuple[ProcessorReport, ...]:
    """Return the sum of the reports of each processor; *reports* are in order of time."""
    total: dict[str, ProcessorReport] = {}
    for report in reports:
        before = total.get(report.processor)
        total[report.processor] = report if before is None else before + report
    return tuple(total.values())


def one_each(reports: Iterable[ProcessorReport]) -> dict[str, ProcessorReport]:
    """Return one report per processor; of duplicates the one with the most records served."""
    kept: dict[str, ProcessorReport] = {}
    for report in reports:
        before = kept.get(report.processor)
        if before is None or report.served > before.served:
            kept[report.processor] = report
    return kept

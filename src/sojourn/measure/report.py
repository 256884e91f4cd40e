"""Raw counters that an engine returns at each pull.

Everything is counted *between* two pulls. Nothing is checked here: reports come from other
machines, so `aggregate` checks them, and names the one that is wrong.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sojourn.measure.sketch import Sketch

__all__ = [
    "NodeReport",
    "OperatorReport",
    "ProcessorReport",
    "Pull",
    "RootReport",
    "one_each",
    "sooner",
]

# The cumulative counters of a processor; its memory is the current value.
_COUNTERS = ("served", "sampled", "service_s", "service_ss", "wait_s", "wait_ss", "cpu_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorReport:
    """The counters of one processor: records served, and the times of one record in Nₘ.

    *service_ss* and *wait_ss* are the sums of the squares, in s². *cpu_s* is the CPU time of
    all records served, *memory_bytes* the memory at the end; 0 if they are not measured. *node*
    is where it runs, on a cluster.
    """

    processor: str
    served: int
    sampled: int
    service_s: float
    service_ss: float
    wait_s: float = 0.0
    wait_ss: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    node: str = ""

    def __add__(self, later: "ProcessorReport") -> "ProcessorReport":
        counted = {name: getattr(self, name) + getattr(later, name) for name in _COUNTERS}
        return replace(later, **counted, node=later.node or self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorReport:
    """The counters of the processors of an operator, and the arrivals in each bin of time.

    The bins are *bin_s* wide and begin with the interval; only the last may be shorter.
    *backlog* is the number of waiting records at its end. *counted_ratio* is the share of the
    operator's queues whose arrivals are counted: below 1 if a report was lost. *bytes* were
    read from or written to each stream, by its name. *transfers* records found an idle
    processor, and waited *transfer_s* in total: the time of the transfer to the operator.
    *hottest* is the share of the records read by key that have the most frequent key, 0 if
    none are; *hottest_name* is that key, if known. *missing* says why processors that are
    wanted do not start. *at_work* processors have records at the end; None if not measured.
    """

    name: str
    wanted: int
    running: int
    processors: tuple[ProcessorReport, ...]
    arrivals: tuple[int, ...]
    bin_s: float
    backlog: int
    counted_ratio: float = 1.0
    bytes: Mapping[str, int] = field(default_factory=dict)
    transfers: int = 0
    transfer_s: float = 0.0
    hottest: float = 0.0
    hottest_name: str = ""
    missing: str = ""
    at_work: int | None = None

    def __add__(self, later: "OperatorReport") -> "OperatorReport":
        merged = one_each(self.processors)
        for identity, report in one_each(later.processors).items():
            merged[identity] = merged[identity] + report if identity in merged else report
        return replace(
            later,
            processors=tuple(merged.values()),
            arrivals=(*self.arrivals, *later.arrivals),
            counted_ratio=min(self.counted_ratio, later.counted_ratio),
            bytes={
                stream: self.bytes.get(stream, 0) + later.bytes.get(stream, 0)
                for stream in {**self.bytes, **later.bytes}
            },
            transfers=self.transfers + later.transfers,
            transfer_s=self.transfer_s + later.transfer_s,
            hottest=later.hottest or self.hottest,
            hottest_name=later.hottest_name or self.hottest_name,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootReport:
    """Roots that entered, in total and by stream if that is known, and that completed.

    *completions* has the times from a root's entry until its whole tree was done, *sums* the
    sums of the sojourns of all records of its tree; both for the completed roots that were
    traced.
    """

    entered: int
    completed: int
    completions: Sketch = field(default_factory=Sketch.empty)
    sums: Sketch = field(default_factory=Sketch.empty)
    streams: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, later: "RootReport") -> "RootReport":
        same = self.streams.keys() == later.streams.keys()
        return RootReport(
            entered=self.entered + later.entered,
            completed=self.completed + later.completed,
            completions=self.completions + later.completions,
            sums=self.sums + later.sums,
            streams={name: n + later.streams[name] for name, n in self.streams.items()}
            if same
            else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The cores of a node, and the CPU seconds per second of all that runs on them, if known.

    Nodes that share cores, because they are on one machine, have equal parts of both.
    """

    cores: float
    busy_cores: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pull:
    """All counters from *since_s* until *at_s*, on the engine's clock.

    *cores* are those of the machine, and *busy_cores* the CPU seconds per second of all its
    processes; None if not measured. On a cluster they are in *nodes*, by name, in the order in
    which nodes get processors; if more than *per_node* processors are wanted on each, other
    nodes come, until there are *most_nodes*. While it is *warming* up the application has just
    started: code is imported and compiled, and times are not representative. *commits* is the
    number of batches that ended in the interval; records waited for them. *notes* say what the
    engine corrected.
    """

    since_s: float
    at_s: float
    operators: tuple[OperatorReport, ...]
    roots: RootReport
    cores: float | None = None
    busy_cores: float | None = None
    nodes: Mapping[str, NodeReport] = field(default_factory=dict)
    per_node: int = 0
    most_nodes: int = 0
    warming: bool = False
    commits: int = 0
    notes: tuple[str, ...] = ()


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


def one_each(reports: Iterable[ProcessorReport]) -> dict[str, ProcessorReport]:
    """Return one report per processor: of duplicates, the one with more records served."""
    kept: dict[str, ProcessorReport] = {}
    for report in reports:
        before = kept.get(report.processor)
        if before is None or report.served > before.served:
            kept[report.processor] = report
    return kept

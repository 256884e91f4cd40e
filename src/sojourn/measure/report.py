"""What an engine hands over at each pull: counters, nothing worked out yet.

Everything is counted *between* two pulls. An engine whose counters run on hands over
`ProcessorReport.since` of the last two. Nothing is checked here: reports cross machines, so
`aggregate` has to expect anything of them anyway, and says what is wrong with whose.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isclose

from sojourn.errors import BadInput
from sojourn.measure.sketch import Sketch

__all__ = ["OperatorReport", "ProcessorReport", "Pull", "RootReport", "one_each", "sooner"]

# Of a bin, or of an interval: clocks that count microseconds in 1e9 seconds round.
_SLACK = 1e-3
# What a processor counts on and on; its memory is what it is now.
_COUNTERS = ("served", "sampled", "service_s", "service_ss", "wait_s", "wait_ss", "cpu_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorReport:
    """What one processor counted: all it served, and the times of one record in Nₘ.

    *service_ss* and *wait_ss* are the sums of the squares, in s². *cpu_s* are the CPU seconds
    of all it served, *memory_bytes* what it holds at the end; 0 where nobody counts them.
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

    def __add__(self, later: "ProcessorReport") -> "ProcessorReport":
        return ProcessorReport(
            processor=self.processor,
            served=self.served + later.served,
            sampled=self.sampled + later.sampled,
            service_s=self.service_s + later.service_s,
            service_ss=self.service_ss + later.service_ss,
            wait_s=self.wait_s + later.wait_s,
            wait_ss=self.wait_ss + later.wait_ss,
            cpu_s=self.cpu_s + later.cpu_s,
            memory_bytes=later.memory_bytes,
        )

    def since(self, earlier: "ProcessorReport") -> "ProcessorReport":
        """Return what was counted after *earlier*, of counters that run on.

        Where any of them fell, the processor started anew, and all that it counted is later.

        >>> was = ProcessorReport(
        ...     processor="p", served=90, sampled=9, service_s=0.9, service_ss=0.1
        ... )
        >>> now = replace(was, served=130, sampled=13)
        >>> now.since(was).served, was.since(now).served
        (40, 90)
        """
        pairs = [(name, getattr(self, name), getattr(earlier, name)) for name in _COUNTERS]
        if any(now < before for _, now, before in pairs):
            return self
        return replace(self, **{name: now - before for name, now, before in pairs})


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorReport:
    """What the processors of an operator counted, and what arrived in each bin of time.

    The bins are *bin_s* wide and begin with the interval; only the last may be cut short.
    *backlog* is the number of records waiting at its end. *counted_ratio* is the share of the
    operator's queues whose arrivals these are: below 1 where some report was lost. *bytes*
    were read from or written to each stream, by its name. *transfers* records found a
    processor idle, and waited *transfer_s* in all: what the way to the operator takes.
    *hottest* is the part of the records read by key that have the most frequent key, 0 where
    none are. *missing* says why fewer processors run than are wanted, if some cannot start.
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
    missing: str = ""

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
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootReport:
    """Roots that entered, in all and by stream where that is known, and that completed.

    *completions* holds the times from a root's entry until its whole tree was done, *sums*
    the sojourns of all records of its tree added up, both of the completed roots that were
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pull:
    """All that was counted from *since_s* until *at_s*, by the engine's own clock.

    *cores* are those of the machine, and *busy_cores* the CPU seconds per second that all of
    it spent, whoever asked for them; None where nobody looks. While it is *warming* the
    application has just started: code is imported and compiled, and times are not what they
    will be. *commits* batches ended in it: records waited meanwhile. *notes* say what the
    engine made up for.
    """

    since_s: float
    at_s: float
    operators: tuple[OperatorReport, ...]
    roots: RootReport
    cores: float | None = None
    busy_cores: float | None = None
    warming: bool = False
    commits: int = 0
    notes: tuple[str, ...] = ()

    def __add__(self, later: "Pull") -> "Pull":
        """Return what one pull would have got instead of these two.

        Raise `BadInput` if the second does not go on where the first ends, at the end of a
        bin. A processor that is in one of them only counts for that one.
        """
        lasted_s = self.at_s - self.since_s
        if not isclose(self.at_s, later.since_s, abs_tol=_SLACK * lasted_s, rel_tol=1e-12):
            raise BadInput(
                f"a pull until {self.at_s} s and one from {later.since_s} s do not join; "
                "merge those that follow each other"
            )
        first = {report.name: report for report in self.operators}
        second = {report.name: report for report in later.operators}
        if first.keys() != second.keys():
            odd = ", ".join(sorted(first.keys() ^ second.keys()))
            raise BadInput(f"only one of the pulls reports {odd}; merge those that report both")
        for name, report in first.items():
            whole = len(report.arrivals) * report.bin_s
            same = isclose(report.bin_s, second[name].bin_s)
            if not same or not isclose(whole, lasted_s, abs_tol=_SLACK * report.bin_s):
                raise BadInput(
                    f"{name}: {len(report.arrivals)} bins of {report.bin_s} s do not fill "
                    f"{lasted_s:g} s, or the next are of {second[name].bin_s} s; "
                    "pull at the ends of bins of one width"
                )
        return Pull(
            since_s=self.since_s,
            at_s=later.at_s,
            operators=tuple(first[name] + second[name] for name in first),
            roots=self.roots + later.roots,
            cores=self.cores if later.cores is None else later.cores,
            busy_cores=_busy_cores(self, later),
            warming=self.warming or later.warming,
            commits=self.commits + later.commits,
            notes=tuple(dict.fromkeys((*self.notes, *later.notes))),
        )


def _busy_cores(first: Pull, second: Pull) -> float | None:
    """Return the mean over both intervals, or over the one that tells."""
    told = [
        (pull.busy_cores, pull.at_s - pull.since_s)
        for pull in (first, second)
        if pull.busy_cores is not None
    ]
    lasted_s = sum(seconds for _, seconds in told)
    return sum(busy * seconds for busy, seconds in told) / lasted_s if told else None


def sooner(report: ProcessorReport, by_s: float) -> ProcessorReport:
    """Return *report* with records that waited *by_s* less each, as far as they did wait.

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
    # whatever is off by chance, some times must have these sums
    return replace(
        report, wait_s=wait_s, wait_ss=min(wait_s**2, max(wait_s**2 / number, squares))
    )


def one_each(reports: Iterable[ProcessorReport]) -> dict[str, ProcessorReport]:
    """Return one report per processor: of one that was sent twice, that with more served."""
    kept: dict[str, ProcessorReport] = {}
    for report in reports:
        before = kept.get(report.processor)
        if before is None or report.served > before.served:
            kept[report.processor] = report
    return kept

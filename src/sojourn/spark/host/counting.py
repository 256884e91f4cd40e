"""Counters of a host between two reports: service and waiting times, bytes, traces."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.measure.counters import ProcessorReport
from sojourn.spark.host.hot_key import HotKeyCounter
from sojourn.spark.wire.counters import BIN_S, OperatorState, OperatorTally, Trace
from sojourn.spark.wire.record import Record

__all__ = ["Counters"]

# Kept between two reports: about 100 come per second, and the loop asks every few seconds.
_MOST_TRACES = 20_000


@dataclass(slots=True)
class Counters:
    """Counters of an operator since the last report.

    Processors are keyed by number: a name for each record would cost more than the counting.

    >>> counters = Counters("a", since_s=100.0)
    >>> counters.arrived(Record("lines/0/7.split.0", b"four", "words"), 100.5, inner=True)
    >>> counters.processor(1).count(service_s=0.3, wait_s=0.1, cpu_s=0.0)
    >>> tally = counters.taken(101.5, OperatorState(), memory={1: 1024, 2: 2048})
    >>> tally.arrivals, tally.bytes, {each.processor: each.served for each in tally.processors}
    ({502: 1}, {'words': 4}, {'a-1': 1, 'a-2': 0})
    """

    operator: str
    since_s: float
    """When these counts began."""
    untold: int = 0
    """Traces dropped for lack of room."""
    _processors: dict[int, ProcessorReport] = field(default_factory=dict)
    _arrivals: dict[int, int] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _transfers: tuple[int, float] = (0, 0.0)
    """Number of transfers, and the sum of their times."""
    _traces: list[Trace] = field(default_factory=list)
    _hot_key: HotKeyCounter = field(default_factory=HotKeyCounter)

    def arrived(self, record: Record, at_s: float, *, inner: bool) -> None:
        """Count a record that arrived; *inner* if from another operator of the part."""
        if inner:
            number = int(at_s / BIN_S)
            self._arrivals[number] = self._arrivals.get(number, 0) + 1
        self.passed(record.stream, record.size_bytes)
        if record.key is not None and not record.everyone:
            self._hot_key.count(record.key)

    def passed(self, stream: str, size_bytes: int) -> None:
        """Count bytes that a stream has carried to or from the operator."""
        self._bytes[stream] = self._bytes.get(stream, 0) + size_bytes

    def processor(self, number: int) -> ProcessorReport:
        """Return the mutable report of a processor, valid until `taken`."""
        report = self._processors.get(number)
        if report is None:
            name = f"{self.operator}-{number}"
            report = self._processors[number] = ProcessorReport(processor=name)
        return report

    def transferred(self, took_s: float) -> None:
        """Count the transfer time of a record that found an idle processor."""
        number, sum_s = self._transfers
        self._transfers = number + 1, sum_s + took_s

    def traced(self, trace: Trace) -> None:
        """Keep a trace, if there is room."""
        if len(self._traces) < _MOST_TRACES:
            self._traces.append(trace)
        else:
            self.untold += 1

    def taken(
        self,
        at_s: float,
        state: OperatorState,
        *,
        memory: Mapping[int, int],
        nodes: Mapping[int, str] | None = None,
    ) -> OperatorTally:
        """Return the counts, and reset them.

        *memory* has the memory of each running processor, and *nodes* the node of each.
        """
        on = nodes or {}
        for number, size_bytes in memory.items():
            self.processor(number).memory_bytes = size_bytes
        for number, report in self._processors.items():
            report.node = on.get(number, "")
        tally = OperatorTally(
            since_s=self.since_s,
            at_s=at_s,
            state=state,
            processors=list(self._processors.values()),
            arrivals=self._arrivals,
            bytes=self._bytes,
            transfers=self._transfers,
            traces=self._traces,
            hottest=self._hot_key.part,
            hottest_name=self._hot_key.key,
        )
        self.since_s, self._processors, self._bytes, self._traces = at_s, {}, {}, []
        self._arrivals = {}
        self._transfers, self._hot_key = (0, 0.0), HotKeyCounter()
        return tally

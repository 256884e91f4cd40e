"""What is counted of an operator between two reports: times, bytes, traces, keys, errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from sojourn.measure.counters import ProcessorReport
from sojourn.spark.wire.counters import BIN_S, OperatorState, OperatorTally, Trace
from sojourn.spark.wire.record import Record

# Kept between two reports: about 100 come per second, and the loop asks every few seconds.
_MOST_TRACES = 20_000
# A key may be a whole document; this is enough to recognise it.
_LONGEST_KEY = 60
# Seconds between two counts of errors that were not logged.
_REPEATED_EVERY_S = 60.0


@dataclass(slots=True)
class HotKeyCounter:
    """Counts keys by the algorithm of Misra and Gries (1982), with *most* counters.

    A key that occurs n times is counted between n - N/most and n times, of N in all.

    >>> hot = HotKeyCounter()
    >>> for key in "abacad":
    ...     hot.count(key)
    >>> hot.part, hot.key
    (0.5, 'a')
    """

    most: int = 500
    _all: int = 0
    _counts: dict[str, int] = field(default_factory=dict)

    def count(self, key: str) -> None:
        self._all += 1
        if key in self._counts or len(self._counts) < self.most:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:  # no counter is free: all fall by one, and those at zero are freed
            self._counts = {name: n - 1 for name, n in self._counts.items() if n > 1}

    @property
    def part(self) -> float:
        """Share of the records with the most frequent key; 0 before the first."""
        return max(self._counts.values(), default=0) / max(1, self._all)

    @property
    def key(self) -> str:
        """The most frequent key, readable and shortened; empty if there is none.

        Keys are JSON lists of columns; one of a single text column is shown as text in quotes.
        """
        key = max(self._counts, key=lambda key: self._counts[key], default="")
        try:
            (column,) = msgspec.json.decode(key, type=tuple[str])
        except msgspec.DecodeError:
            column = None
        shown = key if column is None else repr(column)
        return shown if len(shown) <= _LONGEST_KEY else f"{shown[: _LONGEST_KEY - 1]}…"


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


@dataclass(slots=True)
class _ErrorKind:
    error: str
    more: int = 0


@dataclass(slots=True)
class ErrorLog:
    r"""Errors seen, by kind: raised at the same line, or without traceback the same message.

    >>> log = ErrorLog()
    >>> log.seen("ValueError: bad 1", "File a, line 1\nValueError: bad 1", "lines/0/7")
    'record lines/0/7: ValueError: bad 1\nFile a, line 1\nValueError: bad 1'
    >>> log.seen("ValueError: bad 2", "File a, line 1\nValueError: bad 2", "lines/0/8")
    ''
    >>> log.repeated(0.0), log.repeated(60.0)
    ([], ['1 more like ValueError: bad 1'])
    """

    most_kinds: int = 100
    _kinds: dict[str, _ErrorKind] = field(default_factory=dict)
    _others: int = 0
    """Errors of kinds beyond *most_kinds* since the last report."""
    _told_s: float | None = None

    def seen(self, error: str, traceback: str, record: str) -> str:
        """Return the log entry of an error; empty if its kind was logged already."""
        name = _kind(error, traceback)
        if (kind := self._kinds.get(name)) is not None:
            kind.more += 1
            return ""
        if len(self._kinds) >= self.most_kinds:
            self._others += 1
            return ""
        self._kinds[name] = _ErrorKind(error.partition("\n")[0])
        told = f"record {record}: {error}" if record else error
        return f"{told}\n{traceback}" if traceback else told

    def repeated(self, now_s: float) -> list[str]:
        """Return, once a minute, the counts of errors that were not logged."""
        if self._told_s is None:
            self._told_s = now_s
        if now_s - self._told_s < _REPEATED_EVERY_S:
            return []
        self._told_s = now_s
        lines = [f"{k.more} more like {k.error}" for k in self._kinds.values() if k.more]
        if self._others:
            lines.append(f"{self._others} errors of other kinds")
        for kind in self._kinds.values():
            kind.more = 0
        self._others = 0
        return lines


def _kind(error: str, traceback: str) -> str:
    """Return the type and stack of an error, without the message, which may name the record."""
    frames = [line for line in traceback.splitlines() if line.lstrip().startswith("File ")]
    if not frames:
        return error[:500]
    return "\n".join([error.partition(":")[0], *frames])

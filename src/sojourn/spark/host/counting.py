"""What a host counts between two reports: service and waiting times, bytes, traces."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.spark.host.hot_key import HotKeyCounter
from sojourn.spark.wire.counters import BIN_S, OperatorState, OperatorTally, ProcessorCounts
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.tracing import Trace

__all__ = ["Counters"]

# While nobody asks for them: some 100 a second come, and the loop asks every few seconds.
_MOST_TRACES = 20_000


@dataclass(slots=True)
class _Sums:
    served: int = 0
    service_s: float = 0.0
    service_ss: float = 0.0
    wait_s: float = 0.0
    wait_ss: float = 0.0
    cpu_s: float = 0.0


@dataclass(slots=True)
class Counters:
    """Counts from *since_s* on. Traces that there was no room for are *untold*.

    >>> counters = Counters(since_s=100.0)
    >>> counters.arrived(Record("lines/0/7.split.0", b"four", "words"), 100.5, inner=True)
    >>> counters.served("a-1", service_s=0.3, wait_s=0.1, cpu_s=0.0)
    >>> tally = counters.taken(101.5, OperatorState(), memory={"a-1": 1024, "a-2": 2048})
    >>> tally.arrivals, tally.bytes, [counts.served for counts in tally.processors]
    ({502: 1}, {'words': 4}, [1, 0])
    """

    since_s: float
    untold: int = 0
    _sums: dict[str, _Sums] = field(default_factory=dict)
    _arrivals: dict[int, int] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _transfers: tuple[int, float] = (0, 0.0)
    _traces: list[Trace] = field(default_factory=list)
    _hot_key: HotKeyCounter = field(default_factory=HotKeyCounter)

    def arrived(self, record: Record, at_s: float, *, inner: bool) -> None:
        """Count a record that came; *inner* if from another operator of the part."""
        if inner:
            number = int(at_s / BIN_S)
            self._arrivals[number] = self._arrivals.get(number, 0) + 1
        self.passed(record.stream, record.size_bytes)
        if record.key is not None and not record.everyone:
            self._hot_key.count(record.key)

    def passed(self, stream: str, size_bytes: int) -> None:
        """Count what came from a stream, or went to it."""
        self._bytes[stream] = self._bytes.get(stream, 0) + size_bytes

    def served(self, processor: str, *, service_s: float, wait_s: float, cpu_s: float) -> None:
        """Count a record that a processor is done with."""
        sums = self._sums.get(processor)
        if sums is None:
            sums = self._sums[processor] = _Sums()
        sums.served += 1
        sums.service_s += service_s
        sums.service_ss += service_s * service_s
        sums.wait_s += wait_s
        sums.wait_ss += wait_s * wait_s
        sums.cpu_s += cpu_s

    def transferred(self, took_s: float) -> None:
        """Count a record that waited for nothing but its way here."""
        number, sum_s = self._transfers
        self._transfers = number + 1, sum_s + took_s

    def traced(self, trace: Trace) -> None:
        """Keep what is told of a followed root, if there is room."""
        if len(self._traces) < _MOST_TRACES:
            self._traces.append(trace)
        else:
            self.untold += 1

    def taken(
        self,
        at_s: float,
        state: OperatorState,
        *,
        memory: dict[str, int],
        nodes: Mapping[str, str] | None = None,
    ) -> OperatorTally:
        """Return what was counted, and begin anew.

        *memory* is that of processors there are, *nodes* are those that they are on.
        """
        on = nodes or {}
        names = dict.fromkeys((*self._sums, *memory))
        tally = OperatorTally(
            since_s=self.since_s,
            at_s=at_s,
            state=state,
            processors=[
                _counts(
                    name, self._sums.get(name, _Sums()), memory.get(name, 0), on.get(name, "")
                )
                for name in names
            ],
            arrivals=self._arrivals,
            bytes=self._bytes,
            transfers=self._transfers,
            traces=self._traces,
            hottest=self._hot_key.part,
            hottest_name=self._hot_key.key,
        )
        self.since_s, self._sums, self._bytes, self._traces = at_s, {}, {}, []
        self._arrivals = {}
        self._transfers, self._hot_key = (0, 0.0), HotKeyCounter()
        return tally


def _counts(name: str, sums: _Sums, memory_bytes: int, node: str) -> ProcessorCounts:
    return ProcessorCounts(
        processor=name,
        served=sums.served,
        service_s=sums.service_s,
        service_ss=sums.service_ss,
        wait_s=sums.wait_s,
        wait_ss=sums.wait_ss,
        cpu_s=sums.cpu_s,
        memory_bytes=memory_bytes,
        node=node,
    )

"""What a host counts between two reports: service and waiting times, bytes, traces."""

from dataclasses import dataclass, field

import msgspec

from sojourn.host.hot_key import HotKeyCounter
from sojourn.host.messages import Record
from sojourn.host.tracing import Trace

__all__ = ["Counters", "HostState", "HostTally", "ProcessorCounts"]

# While nobody asks for them: some 100 a second come, and the loop asks every few seconds.
_MOST_TRACES = 20_000


class ProcessorCounts(msgspec.Struct, array_like=True, frozen=True):
    """What one processor did: records, and the sums of times and of their squares."""

    processor: str
    served: int = 0
    service_s: float = 0.0
    service_ss: float = 0.0
    wait_s: float = 0.0
    wait_ss: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0


class HostState(msgspec.Struct, array_like=True, frozen=True):
    """How a host is at the moment. What is replayed, retried and dead counts from its start.

    So do *batches*: how often a feed has begun one. *missing* says why fewer processors run
    than are wanted, if some cannot be started.
    """

    wanted: int = 0
    running: int = 0
    waiting: int = 0
    replayed: int = 0
    retried: int = 0
    dead: int = 0
    feeds: int = 0
    drained: bool = False
    batches: int = 0
    missing: str = ""


class HostTally(msgspec.Struct, array_like=True, frozen=True):
    """What happened at an operator until *at_s* of the machine's clock.

    *positions* are the offsets that come next, by stream and partition. *bytes* went through
    it, by stream. *transfers* are the number and the sum of the times on the way here of
    records that found a processor waiting for them. *hottest* is the part of the records read
    by key that have the most frequent key.
    """

    since_s: float
    at_s: float
    state: HostState
    processors: list[ProcessorCounts]
    positions: dict[str, dict[int, int]]
    bytes: dict[str, int]
    transfers: tuple[int, float]
    traces: list[Trace]
    hottest: float = 0.0


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
    >>> counters.arrived(Record(0, "lines/0/7", b"four", "lines", offset=7))
    >>> counters.served("a-1", service_s=0.3, wait_s=0.1, cpu_s=0.0)
    >>> tally = counters.taken(101.5, HostState(), memory={"a-1": 1024, "a-2": 2048})
    >>> tally.positions, tally.bytes, [counts.served for counts in tally.processors]
    ({'lines': {0: 8}}, {'lines': 4}, [1, 0])
    """

    since_s: float
    untold: int = 0
    _sums: dict[str, _Sums] = field(default_factory=dict)
    _positions: dict[str, dict[int, int]] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _transfers: tuple[int, float] = (0, 0.0)
    _traces: list[Trace] = field(default_factory=list)
    _hot_key: HotKeyCounter = field(default_factory=HotKeyCounter)

    def arrived(self, record: Record) -> None:
        """Count a record that a feed brought."""
        self._positions.setdefault(record.stream, {})[record.partition] = record.offset + 1
        self.passed(record.stream, record.size_bytes)
        if record.key is not None and not record.everyone:
            self._hot_key.count(record.key)

    def passed_by(self, stream: str, partition: int, offset: int) -> None:
        """Take note of a record that a feed read and did not bring."""
        positions = self._positions.setdefault(stream, {})
        positions[partition] = max(positions.get(partition, 0), offset + 1)

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

    def taken(self, at_s: float, state: HostState, *, memory: dict[str, int]) -> HostTally:
        """Return what was counted, and begin anew; *memory* is that of processors there are."""
        names = dict.fromkeys((*self._sums, *memory))
        tally = HostTally(
            since_s=self.since_s,
            at_s=at_s,
            state=state,
            processors=[
                _counts(name, self._sums.get(name, _Sums()), memory.get(name, 0))
                for name in names
            ],
            positions={stream: dict(next_) for stream, next_ in self._positions.items()},
            bytes=self._bytes,
            transfers=self._transfers,
            traces=self._traces,
            hottest=self._hot_key.part,
        )
        self.since_s, self._sums, self._bytes, self._traces = at_s, {}, {}, []
        self._transfers, self._hot_key = (0, 0.0), HotKeyCounter()
        return tally


def _counts(name: str, sums: _Sums, memory_bytes: int) -> ProcessorCounts:
    return ProcessorCounts(
        processor=name,
        served=sums.served,
        service_s=sums.service_s,
        service_ss=sums.service_ss,
        wait_s=sums.wait_s,
        wait_ss=sums.wait_ss,
        cpu_s=sums.cpu_s,
        memory_bytes=memory_bytes,
    )

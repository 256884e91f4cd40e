"""Merge the counters of hosts and the offsets of Kafka into the reports that the loop reads."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sojourn.measure.births import RootTimes, Times
from sojourn.measure.clocks import ProducerClocks
from sojourn.measure.counters import OperatorReport, ProcessorReport, merged, sooner
from sojourn.measure.report import Pull, RootReport
from sojourn.measure.sketch import Sketch
from sojourn.measure.trees import Completed, Trees
from sojourn.spark.driver.busy_cores import CpuUsage
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.reading import Reading
from sojourn.spark.wire.counters import (
    BIN_S,
    OperatorState,
    OperatorTally,
    PartState,
    PartTally,
    Trace,
)
from sojourn.spark.wire.headers import position_of

# An upper bound for the time from topic to host; end offsets and hosts are not read at the
# same moment, so some records always seem to be between them.
_ON_ITS_WAY_S = 0.2
# The births of more roots in a queue are not told apart.
_MOST_BIRTHS = 1000
# After a start, modules are imported and Java compiles, on the cores that records need.
_WARMS_S = 10.0


@dataclass(slots=True)
class Pulls:
    """The counters of an application between one look and the next."""

    layout: Layout
    offsets: Offsets
    positions: dict[str, dict[str, dict[int, int]]]
    """The offset that each query reads next, by topic and partition."""
    outputs: dict[str, dict[str, dict[int, int]]]
    """The end offsets, at the start, of the topics that Spark's own queries write."""
    since_s: float
    """The last look, by the monotonic clock."""
    states: dict[str, OperatorState] = field(default_factory=dict)
    """The latest status of each operator."""
    parts: dict[str, PartState] = field(default_factory=dict)
    """The latest status of each part."""
    relays: dict[str, int] = field(default_factory=dict)
    """The largest number of relays that each part has had."""
    batches: dict[str, int] = field(default_factory=dict)
    """The latest batch of each part."""
    untaken: dict[str, int] = field(default_factory=dict)
    """Unread records in the topics of each operator, at the last look."""
    passed: dict[str, int] = field(default_factory=dict)
    """The offsets up to which the part of each projection has read, added up."""
    cpu_usage: CpuUsage = field(default_factory=CpuUsage)
    clocks: ProducerClocks = field(default_factory=ProducerClocks)
    reading: Reading = field(default_factory=Reading)
    trees: Trees = field(init=False)
    entries: Collection[str] = field(init=False)
    """The operators that roots enter."""
    sources: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.sources = {self.layout.app.topic(name): name for name in self.layout.app.sources}
        self.entries = self.layout.entries()
        self.trees = Trees(self.layout.followers(), self.entries)
        for part in self.layout.parts.values():
            self.passed |= {name: self._passed(name) for name in part.before}

    def taken(  # noqa: PLR0913 - by name
        self,
        tallies: Mapping[str, Sequence[PartTally]],
        ends: Mapping[str, Mapping[int, int]],
        *,
        wanted: Mapping[str, int],
        running: Mapping[str, int],
        clock_s: tuple[float, float],
        until_s: float,
        wall_s: float,
    ) -> Pull:
        """Return the report of the interval up to *until_s*, by the monotonic clock.

        *clock_s* is the interval that the loop asked for, by the engine's clock; *wall_s* is
        its end by the wall clock, of births. *ends* are the current end offsets. The interval
        counts as warm-up if most of it lies within the first seconds after the start.
        """
        bins = max(1, round((until_s - self.since_s) / BIN_S))
        bin_s = (clock_s[1] - clock_s[0]) / bins
        done = self.follow(tally for some in tallies.values() for tally in some)
        batches = dict(self.batches)
        before = dict(self.untaken)
        told: dict[str, list[OperatorTally]] = {}
        for part, some in tallies.items():
            self.located(part, some)
            for tally in some:
                for name, each in tally.operators.items():
                    told.setdefault(name, []).append(each)
        operators = tuple(
            self._operator(
                OperatorReport(
                    name=name,
                    wanted=wanted[name],
                    running=running.get(name, wanted[name]),
                    processors=(),
                    arrivals=self._all_arrivals(name, told.get(name, ()), until_s, bins),
                    bin_s=bin_s,
                    backlog=0,
                ),
                told.get(name, ()),
                ends,
                until_s,
            )
            for name in self.layout.app.operators
        )
        self._look_at_reading(ends, until_s)
        # transfer times are dropped if they may contain waits behind other records
        if any(_waited(each, before, self.untaken) for each in operators):
            operators = tuple(replace(o, transfers=0, transfer_s=0.0) for o in operators)
        roots = self._roots(done, until_s)
        per_s = roots.entered / (clock_s[1] - clock_s[0])
        times = self._times(done, operators, per_s, clock_s[1], wall_s - clock_s[1])
        pull = Pull(
            since_s=clock_s[0],
            at_s=clock_s[1],
            operators=operators,
            roots=replace(roots, times=times),
            cores=self.cpu_usage.cores,
            busy_cores=self.cpu_usage.busy_cores(until_s),
            warming=sum(clock_s) / 2 < _WARMS_S,
            commits=self._begun_since(batches),
            notes=(*self.clocks.texts(), *self.held_up()),
        )
        self.since_s = until_s
        return pull

    def begin(
        self,
        early: Mapping[str, Sequence[PartTally]],
        ends: Mapping[str, Mapping[int, int]],
    ) -> None:
        """Take in the *early* reports of parts, before the first interval.

        *ends* are the current end offsets.
        """
        self._look_at_reading(ends, self.since_s)
        for part, tallies in early.items():
            self.follow(tallies)
            self.located(part, tallies)
        self._look_at_reading(ends, self.since_s)

    def _look_at_reading(self, ends: Mapping[str, Mapping[int, int]], now_s: float) -> None:
        """Check whether parts read the records that wait for them in Kafka, up to *ends*."""
        self.reading.saw(
            now_s,
            {name: self.positions[name] for name in self.layout.parts},
            ends,
            self.offsets.oldest,
            [name for name, part in self.parts.items() if part.closed_by],
        )

    def held_up(self) -> Iterator[str]:
        """Yield the reasons why records wait, by operator or part.

        Texts have no numbers that vary: they stay the same while the reason does.
        """
        waits = [(name, state.waits) for name, state in self.states.items()]
        waits += [(name, part.waits) for name, part in self.parts.items()]
        for name, reason in dict.fromkeys(waits):
            if reason:
                yield f"{name}: records wait: {reason}"
        for name, state in self.states.items():
            if state.spilled:
                yield f"{name}: its queue exceeds its share of memory and is spilled to disk"
        for name, part in self.parts.items():
            for operator in part.closed_by:
                yield f"{name} reads no more records from Kafka: too many wait for {operator}"

    def _operator(
        self,
        report: OperatorReport,
        tallies: Sequence[OperatorTally],
        ends: Mapping[str, Mapping[int, int]],
        until_s: float,
    ) -> OperatorReport:
        """Return *report*, which has the arrivals, with service, transfers and backlog."""
        name = report.name
        backlog = self._backlog(name, ends)
        state, behind_s = self.states.get(name, OperatorState()), self._behind_s(name)
        transfers = sum(tally.transfers[0] for tally in tallies)
        transfer_s = sum(tally.transfers[1] for tally in tallies)
        return replace(
            report,
            processors=tuple(
                sooner(each, behind_s)
                for each in merged(each for tally in tallies for each in tally.processors)
            )
            if name in self.layout.functions
            else self._from_outside(name, until_s),
            backlog=backlog,
            bytes=_bytes(tallies),
            transfers=transfers,
            transfer_s=max(0.0, transfer_s - transfers * behind_s),
            hottest=tallies[-1].hottest if tallies else 0.0,
            hottest_name=tallies[-1].hottest_name if tallies else "",
            missing=state.missing,
            at_work=state.at_work,
        )

    def _begun_since(self, batches: Mapping[str, int]) -> int:
        """Return how many batches have ended since the look at which parts were in *batches*.

        If a part is between two batches, which some of its relays have left, that counts too.
        """
        ended = 0
        for name, state in self.parts.items():
            self.relays[name] = max(state.relays, self.relays.get(name, 0))
            between = self.relays[name] - state.relays
            self.batches[name] = max(state.batch, self.batches.get(name, -1))
            ended += self.batches[name] - batches.get(name, self.batches[name]) or between
        return ended

    def _arrivals(self, topics: Iterable[str], until_s: float, bins: int) -> list[int]:
        return self.offsets.arrivals(list(topics), self.since_s, until_s, bins)

    def _all_arrivals(
        self, name: str, tallies: Sequence[OperatorTally], until_s: float, bins: int
    ) -> tuple[int, ...]:
        """Return the arrivals of an operator in each bin: from Kafka, and from inside its part.

        A projection behind a part is counted by its output: it makes one record of each
        that arrives, and hosts do not count its arrivals.
        """
        part, topics = self.layout.part_of.get(name), self.layout.reads(name)
        behind = part is not None and name in part.behind
        written = list(self.layout.writes(name).values()) if behind else []
        total = self._arrivals([*topics, *written], until_s, bins)
        width_s = (until_s - self.since_s) / bins
        for tally in tallies:
            for number, came in tally.arrivals.items():
                # bins of hosts begin at multiples of `BIN_S`, those of the report at the last
                # look: the middle of a host's bin decides which bin of the report it counts in
                at = int(((number + 0.5) * BIN_S - self.since_s) / width_s)
                total[min(max(at, 0), bins - 1)] += came
        return tuple(total)

    def _from_outside(self, name: str, until_s: float) -> tuple[ProcessorReport, ...]:
        """Return the service of one of Spark's own operators, by the records it wrote.

        A projection before a part writes nothing: it has served the records its part has read.
        """
        if name in self.passed:
            served, self.passed[name] = self.passed[name], self._passed(name)
            served = max(0, self.passed[name] - served)
        else:
            served = sum(self._arrivals(self.layout.writes(name).values(), until_s, 1))
        return (ProcessorReport(processor=f"{name}-1", served=served),)

    def _passed(self, name: str) -> int:
        """Return the sum of the offsets up to which a projection's part has read its topics."""
        begun = self.positions[self.layout.part_of[name].name]
        return sum(sum(begun.get(topic, {}).values()) for topic in self.layout.reads(name))

    def _backlog(self, name: str, ends: Mapping[str, Mapping[int, int]]) -> int:
        """Return the records that wait for an operator, or will.

        Unread records of its part count with the operator's visits per record: they wait
        before the first operator of a part, whichever of its operators is slow. A projection
        of a part has no backlog.
        """
        if name not in self.layout.functions and name in self.layout.part_of:
            return 0
        if name not in self.layout.functions:
            begun, topics = self.positions[name], self.layout.reads(name)
            # the output has one record per input, so the difference is not processed yet
            written = _beyond(ends, self.outputs[name], self.layout.writes(name).values())
            return max(0, _beyond(ends, begun, topics) - written)
        part = self.layout.part_of[name]
        begun, visits = self.positions[part.name], self.parts.get(part.name, PartState()).visits
        read = self.layout.reads(name)
        self.untaken[name] = _beyond(ends, begun, read)
        ahead = sum(
            visits.get(topic, {}).get(name, 1.0 if topic in read else 0.0)
            * _beyond(ends, begun, [topic])
            for topic in self.layout.query_reads(part.name)
        )
        return round(ahead) + self.states.get(name, OperatorState()).waiting

    def located(self, part: str, tallies: Iterable[PartTally]) -> None:
        """Take in the status and the offsets of a part."""
        for tally in tallies:
            self.parts[part] = tally.state
            for name, each in tally.operators.items():
                self.states[name] = each.state
            for topic, offsets in tally.state.positions.items():
                self.positions[part].setdefault(topic, {}).update(offsets)

    def follow(self, tallies: Iterable[PartTally]) -> list[Completed]:
        """Add the traced records in *tallies* to their trees; return the completed roots."""
        return [
            complete
            for part in tallies
            for name, tally in part.operators.items()
            for trace in tally.traces
            for birth_s, sojourn_s in (self._counted(trace),)
            if (
                complete := self.trees.add(
                    name,
                    root=trace.root,
                    identity=trace.identity,
                    birth_s=birth_s,
                    done_s=trace.done_s,
                    sojourn_s=sojourn_s,
                    weight=trace.weight,
                    children=trace.children,
                )
            )
            is not None
        ]

    def _counted(self, trace: Trace) -> tuple[float, float]:
        """Return the birth of a record's root, and the sojourn of the record itself.

        Both are corrected if the clocks of producers are wrong.
        """
        place = position_of(trace.root)
        source = None if place is None else self.sources.get(place[0])
        if place is None or source is None:
            return trace.birth_s, trace.sojourn_s
        appended, is_root = self.offsets.appended(*place), trace.identity == trace.root
        if is_root and appended is not None:
            self.clocks.told(source, trace.birth_s, appended)
        birth_s = self.clocks.birth_s(source, trace.birth_s, appended)
        if is_root and birth_s != trace.birth_s:
            return birth_s, max(0.0, trace.done_s - birth_s)
        return birth_s, trace.sojourn_s  # derived records have timestamps of our own clocks

    def _behind_s(self, name: str) -> float:
        """Return the time that slow producer clocks add to the waits of an operator's records.

        It is known only if the operator reads one source, and 0 otherwise.
        """
        reads = list(self.layout.reads(name))
        source = self.sources.get(reads[0]) if len(reads) == 1 else None
        return 0.0 if source is None else max(0.0, self.clocks.behind_s(source))

    def _times(
        self,
        done: Sequence[Completed],
        operators: Iterable[OperatorReport],
        per_s: float,
        at_s: float,
        ahead_s: float,
    ) -> RootTimes:
        """Return the births of roots at *at_s*; the wall clock is *ahead_s* of this clock.

        A root is not traced before it has been processed once, so those that wait where roots
        enter are added.
        """
        traced = self.trees.open_births()
        waiting = sum(o.backlog for o in operators if o.name in self.entries)
        births_s, weights = _waiting_births_s(waiting, per_s, at_s)
        return RootTimes(
            birth_s=np.array([root.birth_s - ahead_s for root in done]),
            completion_s=np.array([root.completion_s for root in done]),
            sum_s=np.array([root.sum_s for root in done]),
            weight=np.array([float(root.weight) for root in done]),
            open_birth_s=np.concatenate(
                (np.array([birth_s - ahead_s for birth_s, _ in traced]), births_s)
            ),
            open_weight=np.concatenate(
                (np.array([float(weight) for _, weight in traced]), weights)
            ),
        )

    def _roots(self, done: Sequence[Completed], until_s: float) -> RootReport:
        streams = {
            arrival: sum(self._arrivals([self.layout.app.topic(source)], until_s, 1))
            for arrival, source in self.layout.arrivals().items()
        }
        return RootReport(
            entered=sum(streams.values()),
            completed=sum(root.weight for root in done),
            completions=Sketch.of([root.completion_s for root in done]),
            sums=Sketch.of([root.sum_s for root in done]),
            streams=streams,
        )


def _waiting_births_s(number: int, per_s: float, at_s: float) -> tuple[Times, Times]:
    """Return births of the last *number* roots to arrive, and the roots that each stands for.

    They arrived at the current rate; without any, they have waited since the start.
    """
    points = min(number, _MOST_BIRTHS)
    if points == 0:
        return np.empty(0), np.empty(0)
    oldest_s = number / per_s if per_s > 0 else at_s
    ages_s = oldest_s * (np.arange(points) + 0.5) / points
    return np.maximum(at_s - ages_s, 0.0), np.full(points, number / points)


def _waited(
    report: OperatorReport, before: Mapping[str, int], after: Mapping[str, int]
) -> bool:
    """Return whether more records were in an operator's topics than can be in transfer.

    Then a record that finds a processor idle may have waited behind others before, and the
    time since it was written is not its transfer time. Its outputs come in bulk and wait too.
    """
    lasted_s = report.bin_s * len(report.arrivals)
    ordinary = max(1, report.running) + _ON_ITS_WAY_S * sum(report.arrivals) / lasted_s
    return max(before.get(report.name, 0), after.get(report.name, 0)) > ordinary


def _beyond(
    ends: Mapping[str, Mapping[int, int]],
    positions: Mapping[str, Mapping[int, int]],
    topics: Iterable[str],
) -> int:
    """Return how many records of *topics* lie between *positions* and *ends*."""
    return sum(
        max(0, end - positions.get(topic, {}).get(part, 0))
        for topic in topics
        for part, end in ends[topic].items()
    )


def _bytes(tallies: Iterable[OperatorTally]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally.bytes)
    return dict(total)

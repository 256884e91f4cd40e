"""Who gets which record: the host's decisions, without its sockets and processes.

Events go in, instructions come out; another part carries them out. There is one queue for
all processors, so a record never waits while one is idle. Only a record with a key waits for
the one processor of its key, and one for everyone for all of them.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from sojourn.app.operator import OnError
from sojourn.host.messages import Answer, Output, Record

__all__ = [
    "Desk",
    "Fail",
    "Finish",
    "Give",
    "Grant",
    "Instruction",
    "Kill",
    "Reply",
    "Start",
]


@dataclass(frozen=True, slots=True)
class Give:
    """Let a processor work on a record."""

    processor: int
    record: Record


@dataclass(frozen=True, slots=True)
class Start:
    """Start a processor; it is counted once it is ready."""

    processor: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End a processor that has nothing to do, or takes too long."""

    processor: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Let a feed send so many records more."""

    feed: int
    number: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Tell a feed what became of a record."""

    feed: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell a feed that a record stops the application."""

    feed: int
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Tell a feed that all its records are answered."""

    feed: int


Instruction = Give | Start | Kill | Grant | Reply | Fail | Finish


@dataclass(slots=True)
class _Job:
    """A record in hand: whose, tried how often, and by how many it is still to be done."""

    feed: int
    record: Record
    arrived_s: float
    tries: int = 0
    left: int = 1
    outputs: list[Output] = field(default_factory=list)


@dataclass(slots=True)
class _Processor:
    """One that starts (not *ready*), idles (no *job*), works, or goes when it is done."""

    ready: bool = False
    going: bool = False
    job: _Job | None = None
    since_s: float = 0.0
    lane: deque[_Job] = field(default_factory=deque)


@dataclass(slots=True)
class _Feed:
    """Records that it may still send, and those not answered yet."""

    partition: tuple[str, int]
    credit: int = 0
    open: int = 0
    ended: bool = False


class Desk:
    """The records in hand of one operator, its feeds and its processors.

    *ahead* is how many records more than processors are in hand: enough to bridge the way to
    the feed and back, and few, because what is not in hand waits where it can be seen.
    *remembered* answers are kept, for records that come again after a feed failed.
    """

    def __init__(
        self, *, on_error: OnError | None = None, ahead: int = 2, remembered: int = 10_000
    ) -> None:
        self._on_error, self._ahead, self._most = on_error or OnError(), ahead, remembered
        self._wanted = 0
        self._number = 0
        self._queue: deque[_Job] = deque()
        self._processors: dict[int, _Processor] = {}
        self._feeds: dict[int, _Feed] = {}
        self._batches: dict[tuple[str, int], int] = {}
        self._answers: OrderedDict[str, tuple[tuple[str, int], Answer]] = OrderedDict()
        self.replayed = self.retried = 0

    # -- what can be asked ----------------------------------------------------------------

    @property
    def wanted(self) -> int:
        """Processors that there should be."""
        return self._wanted

    @property
    def running(self) -> int:
        """Processors that can take a record."""
        return sum(p.ready and not p.going for p in self._processors.values())

    @property
    def waiting(self) -> int:
        """Records in hand that no processor works on."""
        return len(self._queue) + sum(len(p.lane) for p in self._processors.values())

    def late(self, now_s: float, limit_s: float) -> list[int]:
        """Return the processors that have worked on one record for longer than *limit_s*."""
        return [
            name
            for name, p in self._processors.items()
            if p.job is not None and now_s - p.since_s > limit_s
        ]

    # -- feeds ----------------------------------------------------------------------------

    def feed_came(self, feed: int, query: str, partition: int, batch: int) -> list[Instruction]:
        """Return what to do when a feed begins a batch."""
        place = (query, partition)
        if batch > self._batches.get(place, -1):
            # what was answered before is committed, and will not come again
            for identity in [i for i, (p, _) in self._answers.items() if p == place]:
                del self._answers[identity]
        self._batches[place] = batch
        self._feeds[feed] = _Feed(place)
        return self._grants()

    def records_came(
        self, feed: int, records: Iterable[Record], now_s: float
    ) -> list[Instruction]:
        """Return what to do with records of a feed."""
        done: list[Instruction] = []
        here = self._feeds[feed]
        for record in records:
            here.credit = max(0, here.credit - 1)
            known = self._answers.get(record.identity)
            if known is not None:
                self.replayed += 1
                answer = Answer(record.number, known[1].outputs, known[1].dead)
                done.append(Reply(feed, answer))
                continue
            here.open += 1
            self._take(_Job(feed, record, now_s))
        return [*done, *self._turn(now_s)]

    def feed_ended(self, feed: int) -> list[Instruction]:
        """Return what to do when a feed has no more records."""
        self._feeds[feed].ended = True
        return self._finished(feed)

    def feed_left(self, feed: int, now_s: float) -> list[Instruction]:
        """Return what to do when a feed is gone: its records will come again."""
        self._feeds.pop(feed, None)
        self._queue = deque(job for job in self._queue if job.feed != feed)
        for processor in self._processors.values():
            processor.lane = deque(job for job in processor.lane if job.feed != feed)
        return self._turn(now_s)

    # -- processors -----------------------------------------------------------------------

    def scaled(self, wanted: int, now_s: float) -> list[Instruction]:
        """Return what to do to have *wanted* processors."""
        self._wanted = wanted
        staying = self._staying()
        done: list[Instruction] = [self._start() for _ in range(wanted - len(staying))]
        # those that idle go first, and of those that work the ones that came last
        by_use = sorted(staying, key=lambda n: (self._processors[n].job is not None, -n))
        for name in by_use[: max(0, len(staying) - wanted)]:
            done += self._let_go(name)
        return [*done, *self._turn(now_s)]

    def processor_ready(self, name: int, now_s: float) -> list[Instruction]:
        """Return what to do when a processor can take its first record."""
        processor = self._processors.get(name)
        if processor is None:
            return [Kill(name)]
        processor.ready = True
        return self._turn(now_s)

    def processor_done(
        self, name: int, outputs: Sequence[Output], error: str, now_s: float
    ) -> list[Instruction]:
        """Return what to do when a processor is done with its record."""
        processor = self._processors[name]
        job, processor.job = processor.job, None
        done: list[Instruction] = []
        if job is not None:
            done += self._failed(job, error, processor) if error else self._did(job, outputs)
        if processor.going:
            done += self._gone(name)
        return [*done, *self._turn(now_s)]

    def processor_died(self, name: int, reason: str, now_s: float) -> list[Instruction]:
        """Return what to do when a processor is gone, whatever it was doing."""
        processor = self._processors.pop(name, None)
        if processor is None:
            return []
        done: list[Instruction] = []
        for job in processor.lane:
            done += self._again(job)
        if processor.job is not None and processor.job.record.everyone:
            done += self._did(processor.job, ())  # the others have it, and it is gone
        elif processor.job is not None:
            done += self._failed(processor.job, reason, None)
        if not processor.going and len(self._staying()) < self._wanted:
            done.append(self._start())
        return [*done, *self._turn(now_s)]

    # -- inside ---------------------------------------------------------------------------

    def _staying(self) -> list[int]:
        return [name for name, p in self._processors.items() if not p.going]

    def _start(self) -> Start:
        self._number += 1
        self._processors[self._number] = _Processor()
        return Start(self._number)

    def _let_go(self, name: int) -> list[Instruction]:
        processor = self._processors[name]
        processor.going = True
        lane, processor.lane = processor.lane, deque()
        done = [instruction for job in lane for instruction in self._again(job)]
        return done if processor.job is not None else [*done, *self._gone(name)]

    def _gone(self, name: int) -> list[Instruction]:
        del self._processors[name]
        return [Kill(name)]

    def _take(self, job: _Job) -> None:
        """Put a record where it waits."""
        ready = [n for n in self._staying() if self._processors[n].ready]
        if not ready or (job.record.key is None and not job.record.everyone):
            self._queue.append(job)
        elif job.record.everyone:
            job.left = len(ready)
            for name in ready:
                self._processors[name].lane.append(job)
        elif job.record.key is not None:
            name = ready[crc32(job.record.key.encode()) % len(ready)]
            self._processors[name].lane.append(job)

    def _again(self, job: _Job) -> list[Instruction]:
        """Find another place for a record whose processor is gone."""
        if job.record.everyone:
            return self._did(job, ())
        self._take(job)
        return []

    def _did(self, job: _Job, outputs: Sequence[Output]) -> list[Instruction]:
        job.outputs += outputs
        job.left -= 1
        if job.left > 0:
            return []
        return self._answered(job, Answer(job.record.number, tuple(job.outputs)))

    def _failed(self, job: _Job, reason: str, where: _Processor | None) -> list[Instruction]:
        job.tries += 1
        if job.tries <= self._on_error.retries:
            self.retried += 1
            if not job.record.everyone or where is None:
                self._queue.appendleft(job)
            elif where.going:
                return self._did(job, ())
            else:
                where.lane.appendleft(job)  # only there it is not done yet
            return []
        if self._on_error.then == "dead_letter":
            return self._answered(job, Answer(job.record.number, (), reason))
        if job.feed not in self._feeds:
            return []
        return [Fail(job.feed, job.record.number, reason)]

    def _answered(self, job: _Job, answer: Answer) -> list[Instruction]:
        feed = self._feeds.get(job.feed)
        if feed is None:
            return []  # it will come again, with another feed
        feed.open -= 1
        self._answers[job.record.identity] = (feed.partition, answer)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return [Reply(job.feed, answer), *self._finished(job.feed)]

    def _finished(self, feed: int) -> list[Instruction]:
        here = self._feeds[feed]
        if here.ended and here.open == 0:
            del self._feeds[feed]
            return [Finish(feed)]
        return []

    def _turn(self, now_s: float) -> list[Instruction]:
        """Give idle processors work, and feeds the credit for more."""
        waiting, self._queue = self._queue, deque()
        for job in waiting:  # those with a key, or for everyone, now have where to go
            self._take(job)
        done: list[Instruction] = []
        for name, processor in self._processors.items():
            if not processor.ready or processor.going or processor.job is not None:
                continue
            line = processor.lane or self._queue
            if line:
                processor.job, processor.since_s = line.popleft(), now_s
                done.append(Give(name, processor.job.record))
        return [*done, *self._grants()]

    def _grants(self) -> list[Instruction]:
        """Return credit for feeds, in turn, so that processors have work and little more."""
        open_feeds = [feed for feed, state in self._feeds.items() if not state.ended]
        if not open_feeds:
            return []
        in_hand = self.waiting + sum(p.job is not None for p in self._processors.values())
        promised = sum(self._feeds[feed].credit for feed in open_feeds)
        spare = self.running + self._ahead - in_hand - promised
        granted = dict.fromkeys(open_feeds, 0)
        for _ in range(spare):
            granted[min(open_feeds, key=lambda f: (self._feeds[f].credit + granted[f], f))] += 1
        for feed, number in granted.items():
            self._feeds[feed].credit += number
        return [Grant(feed, number) for feed, number in granted.items() if number]

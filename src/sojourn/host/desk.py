"""Who gets which record: the host's decisions, without its sockets and processes.

Events go in, instructions come out; another part carries them out. There is one queue for
all processors, so a record never waits while one is idle. Only a record with a key waits for
the one processor of its key, and one for everyone for all of them.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from sojourn.app.operator import OnError
from sojourn.host.messages import Answer, Hello, Output, Record, Result

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
    """Let a processor work on records, one after the other."""

    processor: int
    records: tuple[Record, ...]


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
    """Tell a feed, if it is there, what became of a record.

    *record* is None where that was remembered.
    """

    feed: int
    answer: Answer
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell a feed that a record stops the application."""

    feed: int
    record: Record
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Tell a feed that all its records are answered."""

    feed: int


Instruction = Give | Start | Kill | Grant | Reply | Fail | Finish

# What comes in hand ahead of processors, and what one is given at once, is at most so much
# work: enough to bridge the way to the feed and to a processor, too little to be noticed.
_AHEAD_S = 0.005
_AT_ONCE_S = 0.001
_MOST_AHEAD = 500
# Of the mean service time, what the latest record counts for.
_NEWEST = 0.05


@dataclass(slots=True)
class _Feed:
    """Records that it may still send, and those not answered yet.

    One that came too late is *shut*: it gets nothing. One that has *left* will bring its
    records again. So many as it still *brings* were passed on before, and need no credit.
    """

    number: int
    partition: tuple[str, int]
    batch: int
    brings: int = 0
    shut: bool = False
    left: bool = False
    credit: int = 0
    open: int = 0
    ended: bool = False


@dataclass(slots=True)
class _Job:
    """A record in hand: whose, tried how often, and by how many it is still to be done."""

    feed: _Feed
    record: Record
    tries: int = 0
    deaths: int = 0
    left: int = 1
    outputs: list[Output] = field(default_factory=list)


@dataclass(slots=True)
class _Processor:
    """One that starts (not *ready*), idles (no *jobs*), works, or goes when it is done."""

    ready: bool = False
    going: bool = False
    jobs: list[_Job] = field(default_factory=list)
    since_s: float = 0.0
    lane: deque[_Job] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class _Known:
    """What became of a record; *orphaned*, if its feed had left by then."""

    feed: _Feed
    answer: Answer
    orphaned: bool

    def committed(self, batch: int) -> bool:
        """Tell whether it will not come again once *batch* has begun.

        What a batch leaves behind when it ends comes with the next.
        """
        return self.feed.batch + self.orphaned < batch


class Desk:
    """The records in hand of one operator, its feeds and its processors.

    *ahead* is how many records more than processors are in hand, or more if they take no
    time: enough to bridge the way to the feed and back, and few, because what is not in hand
    waits where it can be seen. *remembered_bytes* of answers are kept, for records that come
    again after a feed failed, or left them to the next.
    """

    def __init__(
        self,
        *,
        on_error: OnError | None = None,
        ahead: int = 2,
        remembered_bytes: int = 64 << 20,
    ) -> None:
        self._on_error, self._ahead = on_error or OnError(), ahead
        self._most_bytes, self._bytes = remembered_bytes, 0
        self._wanted = 0
        self._number = 0
        self._pace_s: float | None = None
        self._queue: deque[_Job] = deque()
        self._homeless: list[_Job] = []
        self._processors: dict[int, _Processor] = {}
        self._feeds: dict[int, _Feed] = {}
        self._batches: dict[tuple[str, int], int] = {}
        self._answers: dict[str, _Known] = {}
        self._orphans: dict[str, _Job] = {}
        self.draining = False
        self._begun: dict[tuple[str, int], int] = {}
        self.replayed = self.retried = self.dead = 0

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
    def feeds(self) -> int:
        """Feeds that are there."""
        return len(self._feeds)

    @property
    def waiting(self) -> int:
        """Records in hand that no processor works on."""
        lanes = sum(len(p.lane) for p in self._processors.values())
        return len(self._queue) + len(self._homeless) + lanes

    @property
    def drained(self) -> bool:
        """Whether all that came before `drain` is answered, and Spark has committed it.

        It has when the next batch begins.
        """
        shut = {feed.partition for feed in self._feeds.values() if feed.shut}
        # a host that was just started again has not met its feeds yet
        return self.draining and bool(shut) and shut >= self._batches.keys()

    def late(self, now_s: float, limit_s: float) -> list[int]:
        """Return the processors that have worked on one record for longer than *limit_s*."""
        return [
            name
            for name, p in self._processors.items()
            if p.jobs and now_s - p.since_s > limit_s
        ]

    # -- feeds ----------------------------------------------------------------------------

    def feed_came(self, feed: int, hello: Hello) -> list[Instruction]:
        """Return what to do when a feed begins a batch."""
        place, batch = (hello.query, hello.partition), hello.batch
        for identity, known in list(self._answers.items()):
            if known.feed.partition == place and known.committed(batch):
                self._forget(identity)
        self._batches[place] = batch
        # one that failed had begun before the drain, and is to end
        again = batch <= self._begun.get(place, -1)
        shut = self.draining and hello.brings is None and not again
        self._feeds[feed] = _Feed(feed, place, batch, hello.brings or 0, shut=shut)
        return self._grants()

    def knows(self, record: Record) -> bool:
        """Tell whether a record was here before, with a feed that left."""
        return record.identity in self._orphans or record.identity in self._answers

    def records_came(
        self, feed: int, records: Iterable[Record], now_s: float
    ) -> list[Instruction]:
        """Return what to do with records of a feed."""
        done: list[Instruction] = []
        here = self._feeds[feed]
        for record in records:
            if here.brings:
                here.brings -= 1
            else:
                here.credit = max(0, here.credit - 1)
            known = self._answers.get(record.identity)
            if known is not None:
                self.replayed += known.feed.batch == here.batch
                answer = Answer(record.number, known.answer.outputs, known.answer.dead)
                done.append(Reply(feed, answer))
                continue
            here.open += 1
            if (job := self._orphans.pop(record.identity, None)) is not None:
                job.feed, job.record = here, record
            else:
                self._take(_Job(here, record))
        return [*done, *self._turn(now_s)]

    def feed_ended(self, feed: int) -> list[Instruction]:
        """Return what to do when a feed has no more records."""
        self._feeds[feed].ended = True
        return self._finished(feed)

    def drain(self) -> None:
        """Let batches that have begun end, and take nothing of those that begin later."""
        if not self.draining:
            self.draining, self._begun = True, dict(self._batches)

    def feed_leaves(self, feed: int) -> list[Instruction]:
        """Return what to do when a feed does not wait for the rest: it brings it again."""
        if feed not in self._feeds:
            return []
        self.feed_left(feed)
        return [Finish(feed)]

    def feed_left(self, feed: int) -> None:
        """Go on with the records of a feed that is gone: they will come again."""
        gone = self._feeds.pop(feed, None)
        if gone is None:
            return
        gone.left = True
        lanes = (job for p in self._processors.values() for job in (*p.lane, *p.jobs))
        for job in (*self._queue, *self._homeless, *lanes):
            if job.feed is gone:
                self._orphans[job.record.identity] = job

    # -- processors -----------------------------------------------------------------------

    def scaled(self, wanted: int, now_s: float) -> list[Instruction]:
        """Return what to do to have *wanted* processors."""
        self._wanted = wanted
        staying = self._staying()
        done: list[Instruction] = [self._start() for _ in range(wanted - len(staying))]
        # those that idle go first, and of those that work the ones that came last
        by_use = sorted(staying, key=lambda n: (bool(self._processors[n].jobs), -n))
        for name in by_use[: max(0, len(staying) - wanted)]:
            done += self._let_go(name)
        return [*done, *self._turn(now_s)]

    def processor_ready(self, name: int, now_s: float) -> list[Instruction]:
        """Return what to do when a processor can take its first record."""
        processor = self._processors.get(name)
        if processor is None:
            return [Kill(name)]
        processor.ready = True
        self._settle()
        return self._turn(now_s)

    def processor_done(
        self, name: int, results: Sequence[Result], now_s: float
    ) -> list[Instruction]:
        """Return what to do when a processor is done with all it was given."""
        processor = self._processors[name]
        jobs, processor.jobs = processor.jobs, []
        done: list[Instruction] = []
        for job, result in zip(jobs, results, strict=True):
            self._paced(result.took_s)
            if result.error:
                done += self._failed(job, result.error, processor)
            else:
                done += self._did(job, result.outputs)
        if processor.going:
            done += self._gone(name)
        return [*done, *self._turn(now_s)]

    def processor_lost(self, name: int) -> None:
        """Give a processor that is gone nothing more, while it is asked what it died of."""
        if (processor := self._processors.get(name)) is not None:
            processor.ready = False

    def processor_died(
        self, name: int, reason: str, now_s: float, *, late: bool = False
    ) -> list[Instruction]:
        """Return what to do when a processor is gone, whatever it was doing.

        One that dies need not have died of its record, which is tried once more; one that was
        ended because it was *late* had its chance.
        """
        processor = self._processors.pop(name, None)
        if processor is None:
            return []
        done: list[Instruction] = []
        for job in processor.lane:
            done += self._again(job)
        for job in processor.jobs:
            job.deaths += 1
            if job.record.everyone:
                done += self._did(job, ())  # the others have it, and this one is gone
            elif job.deaths == 1 and not late:
                self.retried += 1
                self._queue.appendleft(job)
            else:
                done += self._failed(job, reason, None)
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
        return done if processor.jobs else [*done, *self._gone(name)]

    def _gone(self, name: int) -> list[Instruction]:
        del self._processors[name]
        return [Kill(name)]

    def _take(self, job: _Job) -> None:
        """Put a record where it waits."""
        if job.record.key is None and not job.record.everyone:
            self._queue.append(job)
            return
        ready = [n for n in self._staying() if self._processors[n].ready]
        if not ready:
            self._homeless.append(job)
        elif job.record.everyone:
            job.left = len(ready)
            for name in ready:
                self._processors[name].lane.append(job)
        elif job.record.key is not None:
            name = ready[crc32(job.record.key.encode()) % len(ready)]
            self._processors[name].lane.append(job)

    def _settle(self) -> None:
        """Find a place for those that had no processor to wait for."""
        homeless, self._homeless = self._homeless, []
        for job in homeless:
            self._take(job)

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
            self.dead += 1
            return self._answered(job, Answer(job.record.number, (), reason))
        if job.feed.left:
            self._orphans.pop(job.record.identity, None)  # it comes again, to be tried again
            return []
        return [Fail(job.feed.number, job.record, reason)]

    def _answered(self, job: _Job, answer: Answer) -> list[Instruction]:
        feed = job.feed
        self._remember(job.record.identity, _Known(feed, answer, orphaned=feed.left))
        reply = Reply(feed.number, answer, job.record)
        if feed.left:
            self._orphans.pop(job.record.identity, None)
            return [reply]
        feed.open -= 1
        return [reply, *self._finished(feed.number)]

    def _remember(self, identity: str, known: _Known) -> None:
        self._forget(identity)
        self._answers[identity] = known
        self._bytes += _size_bytes(known.answer)
        while self._bytes > self._most_bytes:
            self._forget(next(iter(self._answers)))

    def _forget(self, identity: str) -> None:
        if (known := self._answers.pop(identity, None)) is not None:
            self._bytes -= _size_bytes(known.answer)

    def _finished(self, feed: int) -> list[Instruction]:
        here = self._feeds[feed]
        if here.ended and here.open == 0:
            del self._feeds[feed]
            return [Finish(feed)]
        return []

    def _turn(self, now_s: float) -> list[Instruction]:
        """Give idle processors work, and feeds the credit for more."""
        done: list[Instruction] = []
        for name, processor in self._processors.items():
            if not processor.ready or processor.going or processor.jobs:
                continue
            line = processor.lane or self._queue
            if line:
                processor.jobs, processor.since_s = self._share(line), now_s
                done.append(Give(name, tuple(job.record for job in processor.jobs)))
        return [*done, *self._grants()]

    def _share(self, line: deque[_Job]) -> list[_Job]:
        """Take off *line* what a processor does next: several where they take no time.

        Not more than its share, so that all have work, and one that was tried before alone,
        so that it harms no other.
        """
        most = 1 if not self._pace_s else int(_AT_ONCE_S / self._pace_s)
        jobs = [line.popleft()]
        share = -(-len(line) // max(1, self.running))
        while line and len(jobs) < min(most, share) and not line[0].tries + line[0].deaths:
            if jobs[0].tries or jobs[0].deaths:
                break
            jobs.append(line.popleft())
        return jobs

    def _paced(self, took_s: float) -> None:
        before = took_s if self._pace_s is None else self._pace_s
        self._pace_s = before + _NEWEST * (took_s - before)

    def _grants(self) -> list[Instruction]:
        """Return credit for feeds, so that processors have work and little more.

        Each feed has its share, whatever the others have not used: one that has nothing to
        send would otherwise keep another waiting, and in a loop both would wait for ever.
        """
        feeds = {
            name: feed for name, feed in self._feeds.items() if not (feed.ended or feed.shut)
        }
        if not feeds:
            return []
        running = self.running
        ahead = self._ahead
        if self._pace_s:
            ahead = max(ahead, min(_MOST_AHEAD, int(running * _AHEAD_S / self._pace_s)))
        in_hand = self.waiting + sum(len(p.jobs) for p in self._processors.values())
        share = -(-(running + ahead - in_hand) // len(feeds))
        granted = {name: share - feed.credit for name, feed in feeds.items()}
        granted = {name: number for name, number in granted.items() if number > 0}
        for name, number in granted.items():
            feeds[name].credit += number
        return [Grant(name, number) for name, number in granted.items()]


def _size_bytes(answer: Answer) -> int:
    """Return about how much memory an answer takes: what it carries, and what holds it."""
    return 500 + sum(200 + output.size_bytes for output in answer.outputs)

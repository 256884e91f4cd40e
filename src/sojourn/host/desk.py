"""The feeds of an operator, their records, and what became of them.

Events go in, instructions come out; another part carries them out.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sojourn.host.answers import AnswerMemory
from sojourn.host.in_hand import FeedInHand, RecordInHand
from sojourn.host.instructions import Fail, Finish, Grant, Instruction, Reply
from sojourn.host.messages import Answer, Hello, Record, Result
from sojourn.host.operator_desk import Completed, OperatorDesk, OperatorInstruction, Stopping

__all__ = ["Desk"]


class Desk:
    """An *operator* with its feeds.

    *remembered_bytes* of answers are kept, for records that come again after a feed failed,
    or left them to the next.
    """

    def __init__(self, operator: OperatorDesk, *, remembered_bytes: int = 64 << 20) -> None:
        self.operator = operator
        self._feeds: dict[int, FeedInHand] = {}
        self._feed_of: dict[RecordInHand, FeedInHand] = {}
        self._batches: dict[tuple[str, int], int] = {}
        self._answers = AnswerMemory(remembered_bytes)
        self._orphans: dict[str, list[RecordInHand]] = {}
        self.draining = False
        self._begun: dict[tuple[str, int], int] = {}
        self.replayed = self.batches = 0

    # -- what can be asked ----------------------------------------------------------------

    @property
    def feeds(self) -> int:
        """Feeds that are there."""
        return len(self._feeds)

    @property
    def drained(self) -> bool:
        """Whether all that came before `drain` is answered, and Spark has committed it.

        It has when the next batch begins.
        """
        shut = {feed.partition for feed in self._feeds.values() if feed.shut}
        # a host that was just started again has not met its feeds yet
        return self.draining and bool(shut) and shut >= self._batches.keys()

    # -- feeds ----------------------------------------------------------------------------

    def feed_came(self, feed: int, hello: Hello) -> list[Instruction]:
        """Return what to do when a feed begins a batch."""
        place, batch = (hello.query, hello.partition), hello.batch
        self._answers.begun(place, batch)
        self.batches += self._batches.get(place) != batch
        self._batches[place] = batch
        # one that failed had begun before the drain, and is to end
        again = batch <= self._begun.get(place, -1)
        shut = self.draining and hello.brings is None and not again
        self._feeds[feed] = FeedInHand(feed, place, batch, hello.brings or 0, shut=shut)
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
                answer, batch = known
                self.replayed += batch == here.batch
                done.append(Reply(feed, replace(answer, number=record.number)))
                continue
            here.open[record.number] = self._taken(here, record)
        return [*done, *self._with_grants(self.operator.turn(now_s))]

    def feed_ended(self, feed: int) -> list[Instruction]:
        """Return what to do when a feed has no more records."""
        here = self._feeds[feed]
        here.ended = True
        for job in [job for jobs in self._orphans.values() for job in jobs]:
            # it would have come by now
            if job.held and self._feed_of[job].partition == here.partition:
                self._disown(job)
                del self._feed_of[job]
                self.operator.drop(job)
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
        for job in gone.open.values():
            self._orphans.setdefault(job.record.identity, []).append(job)

    # -- processors -----------------------------------------------------------------------

    def scaled(self, wanted: int, now_s: float) -> list[Instruction]:
        """Return what to do to have *wanted* processors."""
        return self._with_grants(self.operator.scaled(wanted, now_s))

    def time_passed(self, now_s: float) -> list[Instruction]:
        """Return what to do by now: start again what could not be started before."""
        return self._with_grants(self.operator.time_passed(now_s))

    def processor_ready(self, name: int, now_s: float) -> list[Instruction]:
        """Return what to do when a processor can take its first record."""
        return self._with_grants(self.operator.processor_ready(name, now_s))

    def processor_done(
        self, name: int, results: Sequence[Result], now_s: float
    ) -> list[Instruction]:
        """Return what to do when a processor is done with the first of what it was given."""
        return self._with_grants(self.operator.processor_done(name, results, now_s))

    def processor_died(
        self, name: int, reason: str, now_s: float, *, late: bool = False
    ) -> list[Instruction]:
        """Return what to do when a processor is gone, whatever it was doing."""
        return self._with_grants(self.operator.processor_died(name, reason, now_s, late=late))

    # -- inside: records ------------------------------------------------------------------

    def _taken(self, feed: FeedInHand, record: Record) -> RecordInHand:
        """Return a record as a job, which may be under way if it comes again."""
        orphans = self._orphans.get(record.identity)
        if not orphans:
            job = self.operator.put(record)
        else:
            job = orphans[0]
            self._disown(job)
            job.record = record
            if job.held:
                self.operator.put_back(job)
        self._feed_of[job] = feed
        return job

    def _disown(self, job: RecordInHand) -> None:
        """Take a record off those that will come again."""
        orphans = self._orphans.get(job.record.identity, [])
        if job in orphans:
            orphans.remove(job)
        if not orphans:
            self._orphans.pop(job.record.identity, None)

    def _with_grants(self, instructions: Iterable[OperatorInstruction]) -> list[Instruction]:
        """Return what an operator's instructions mean for its feeds, and credit for more."""
        done: list[Instruction] = []
        for instruction in instructions:
            match instruction:
                case Completed(job, answer):
                    done += self._answered(job, answer)
                case Stopping(job, reason, traceback):
                    if not (feed := self._feed_of[job]).left:
                        done.append(Fail(feed.number, job.record, reason, traceback))
                case _:
                    done.append(instruction)
        return [*done, *self._grants()]

    def _answered(self, job: RecordInHand, answer: Answer) -> list[Instruction]:
        feed = self._feed_of.pop(job)
        self._answers.keep(
            job.record.identity,
            answer,
            partition=feed.partition,
            batch=feed.batch,
            # what a feed leaves behind comes with the next batch; what another operator sent
            # may be sent again by a batch of that one, which began before this one
            more_batches=feed.left + job.record.is_child,
        )
        reply = Reply(feed.number, answer, job.record)
        if feed.left:
            self._disown(job)
            return [reply]
        del feed.open[job.record.number]
        return [reply, *self._finished(feed.number)]

    def _finished(self, feed: int) -> list[Instruction]:
        here = self._feeds[feed]
        if here.ended and not here.open:
            del self._feeds[feed]
            return [Finish(feed)]
        return []

    def _grants(self) -> list[Instruction]:
        """Return credit for feeds.

        Each feed has its share, whatever the others have not used: one that has nothing to
        send would otherwise keep another waiting, and in a loop both would wait for ever.
        """
        feeds = {
            name: feed for name, feed in self._feeds.items() if not (feed.ended or feed.shut)
        }
        if not feeds:
            return []
        share = -(-self.operator.room // len(feeds))
        granted = {name: share - feed.credit for name, feed in feeds.items()}
        granted = {name: number for name, number in granted.items() if number > 0}
        for name, number in granted.items():
            feeds[name].credit += number
        return [Grant(name, number) for name, number in granted.items()]

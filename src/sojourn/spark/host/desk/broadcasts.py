"""Records for everyone: each processor has them to do, and they are answered once."""

from bisect import insort
from collections import deque

from sojourn.spark.host.desk.broadcast_backfill import Lessons
from sojourn.spark.host.desk.error_policy import ErrorPolicy
from sojourn.spark.host.desk.instructions import Completed, NotKept, Stopping
from sojourn.spark.host.desk.processors import Processors
from sojourn.spark.host.desk.work_item import Processor, RecordInHand, Round
from sojourn.spark.wire.processor import Answer, Result

__all__ = ["Broadcasts"]

Outcome = Completed | Stopping | NotKept


class Broadcasts:
    """What each of *processors* has to do, in its lane, before it takes from the queue.

    The latest of each key becomes one of the *lessons* for processors that start later.
    """

    def __init__(
        self, processors: Processors, lessons: Lessons, error_policy: ErrorPolicy
    ) -> None:
        self._processors, self._lessons = processors, lessons
        self._error_policy = error_policy
        self._homeless: list[RecordInHand] = []
        self._rounds: dict[int, RecordInHand] = {}
        self._in_lanes = 0

    @property
    def waiting(self) -> int:
        """How often a record waits for a processor."""
        return len(self._homeless) + self._in_lanes

    @property
    def in_lanes(self) -> int:
        """How often a record waits for a processor that is there."""
        return self._in_lanes

    def put(self, job: RecordInHand) -> None:
        """Let a record wait for each processor there is, or for the first that comes."""
        here = [processor for _, processor in self._processors if processor.here]
        job.round = Round(len(here))
        if job.key is not None:
            self._rounds[job.place] = job
        for processor in here:  # one that comes here again was before those that wait
            insort(processor.lane, job, key=lambda other: other.place)
        self._in_lanes += len(here)
        if not here:
            self._homeless.append(job)

    def next_of(self, processor: Processor) -> RecordInHand:
        """Take the first record from the lane of a processor."""
        self._in_lanes -= 1
        return processor.lane.popleft()

    def forget(self) -> None:
        """Forget all of them."""
        self._homeless, self._rounds, self._in_lanes = [], {}, 0
        for _, processor in self._processors:
            processor.lane.clear()
            processor.tried = 0

    def join(self, processor: Processor) -> None:
        """Let a processor that has started do what waits for one, or is under way elsewhere."""
        homeless, self._homeless = self._homeless, []
        for job in sorted({*homeless, *self._rounds.values()}, key=lambda job: job.place):
            if job.round is None or not job.round.left:
                self.put(job)
            elif not self._lessons.latest.has_newer(job.place, job.record):
                job.round.left += 1
                processor.lane.append(job)
                self._in_lanes += 1

    def leave(self, processor: Processor) -> list[Outcome]:
        """Do without a processor that goes."""
        lane, processor.lane = processor.lane, deque()
        self._in_lanes -= len(lane)
        done: list[Outcome] = []
        for job in lane:
            if job.round is not None:
                done += self.missed(job, job.round)
        return done

    def did_its_part(
        self, processor: Processor, job: RecordInHand, here: Round, result: Result
    ) -> list[Outcome]:
        """Take note of what a record came to at one processor."""
        if result.error:
            processor.tried += 1
            if processor.tried <= self._error_policy.on_error.retries:
                if not processor.here:
                    return self.missed(job, here)
                self._error_policy.retried += 1
                self._in_lanes += 1
                processor.lane.appendleft(job)  # only there it is not done yet
                return []
            if not here.error:
                here.error, here.traceback = result.error, result.traceback
                job.tries = processor.tried
        else:
            here.did += 1
            here.outputs += result.outputs
        processor.tried = 0
        here.left -= 1
        return self._rounded_off(job, here)

    def missed(
        self, job: RecordInHand, here: Round, reason: str = "", *, late: bool = False
    ) -> list[Outcome]:
        """Do without a processor that is gone: the others have the record."""
        here.died = here.died or reason
        if late:
            here.error = here.error or reason
        here.left -= 1
        return self._rounded_off(job, here)

    def _rounded_off(self, job: RecordInHand, here: Round) -> list[Outcome]:
        """Answer a record, once, when nobody has it to do any more."""
        if here.left:
            return []
        self._rounds.pop(job.place, None)
        kept = self._kept(job) if here.did else []
        if here.error:
            given_up = self._error_policy.given_up(job, here.error, here.traceback)
            return [*kept, given_up]
        if here.did:
            return [*kept, Completed(job, Answer(here.outputs))]
        if job.deaths > 1 and not self._error_policy.may_retry(job):
            return [self._error_policy.given_up(job, here.died)]
        self.put(job)  # all that had it are gone, and nobody has done it
        return []

    def _kept(self, job: RecordInHand) -> list[NotKept]:
        """Keep a record for processors that start later, if it has a key and is the latest."""
        if job.key is None or self._lessons.latest.has_newer(job.place, job.record):
            return []
        reason = self._lessons.latest.keep(job.place, job.record)
        return [NotKept(job.record, reason)] if reason else []

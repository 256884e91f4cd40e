"""Broadcast records: every processor processes them, and they are answered once."""

from bisect import insort
from collections import deque
from dataclasses import dataclass, field

from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.broadcast_backfill import Lessons
from sojourn.spark.host.desk.error_policy import ErrorPolicy
from sojourn.spark.host.desk.instructions import NotKept, RecordCompleted, StopPart
from sojourn.spark.host.desk.processors import Processor, Processors
from sojourn.spark.wire.processor import Answer, OutputRecord, Result

Outcome = RecordCompleted | StopPart | NotKept


@dataclass(slots=True)
class _Round:
    """The progress of a broadcast record through the processors."""

    record: OpenRecord
    left: int
    """Processors that have not processed it yet; 0 if it waits for the first to start."""
    did: int = 0
    """Processors that have processed it."""
    outputs: list[OutputRecord] = field(default_factory=list)
    error: str = ""
    """Error of the first processor that failed."""
    traceback: str = ""
    died: str = ""
    """Why the first processor ended that may not have processed it."""


class Broadcasts:
    """The broadcast records that wait in the lane of each processor.

    A processor empties its lane before it takes from the queue. The latest record of each key
    is kept in *lessons* for processors that start later.
    """

    def __init__(
        self, processors: Processors, lessons: Lessons, error_policy: ErrorPolicy
    ) -> None:
        self._processors, self._lessons = processors, lessons
        self._error_policy = error_policy
        self._rounds: dict[int, _Round] = {}
        self._homeless = 0  # records that wait for a first processor
        self.in_lanes = 0
        """Entries in all lanes: those that wait for a running processor."""

    @property
    def waiting(self) -> int:
        """Waiting records, each counted once for every processor that it waits for."""
        return self._homeless + self.in_lanes

    def put(self, record: OpenRecord) -> None:
        """Add a record to the lane of each processor, or hold it until the first starts."""
        here = [processor for _, processor in self._processors if processor.here]
        self._rounds[record.number] = _Round(record, len(here))
        for processor in here:  # sorted, because a retried record precedes those that wait
            insort(processor.lane, record, key=lambda other: other.number)
        self.in_lanes += len(here)
        self._homeless += not here

    def next_of(self, processor: Processor) -> OpenRecord:
        """Take the first record from the lane of a processor."""
        self.in_lanes -= 1
        return processor.lane.popleft()

    def forget(self) -> None:
        self._rounds, self._homeless, self.in_lanes = {}, 0, 0
        for _, processor in self._processors:
            processor.lane.clear()
            processor.tried = 0

    def join(self, processor: Processor) -> None:
        """Fill the lane of a processor that has started.

        It gets the records that wait for any processor, and those with a key that others
        still process and that no newer record of their key has replaced.
        """
        self._homeless = 0
        for _, under_way in sorted(self._rounds.items()):
            record = under_way.record
            if not under_way.left:
                self.put(record)
            elif record.key is not None and not self._lessons.latest.has_newer(
                record.number, record.record
            ):
                under_way.left += 1
                processor.lane.append(record)
                self.in_lanes += 1

    def leave(self, processor: Processor) -> list[Outcome]:
        """Empty the lane of a processor that leaves."""
        lane, processor.lane = processor.lane, deque()
        self.in_lanes -= len(lane)
        return [outcome for record in lane for outcome in self.missed(record)]

    def did_its_part(
        self, processor: Processor, record: OpenRecord, result: Result
    ) -> list[Outcome]:
        """Add the result of one processor; return the outcome if it was the last."""
        under_way = self._rounds[record.number]
        if result.error:
            processor.tried += 1
            if processor.tried <= self._error_policy.on_error.retries:
                if not processor.here:
                    return self.missed(record)
                self._error_policy.retried += 1
                self.in_lanes += 1
                processor.lane.appendleft(record)  # retried by this processor alone
                return []
            if not under_way.error:
                under_way.error, under_way.traceback = result.error, result.traceback
                self._error_policy.failures(record).tries = processor.tried
        else:
            under_way.did += 1
            under_way.outputs += result.outputs
        processor.tried = 0
        under_way.left -= 1
        return self._rounded_off(under_way)

    def missed(
        self, record: OpenRecord, reason: str = "", *, late: bool = False
    ) -> list[Outcome]:
        """Stop waiting for a processor that is gone; the others still have the record."""
        under_way = self._rounds[record.number]
        under_way.died = under_way.died or reason
        if late:
            under_way.error = under_way.error or reason
        under_way.left -= 1
        return self._rounded_off(under_way)

    def _rounded_off(self, over: _Round) -> list[Outcome]:
        """Answer a record once no processor has it left to process."""
        if over.left:
            return []
        record, error_policy = over.record, self._error_policy
        del self._rounds[record.number]
        kept = self._kept(record) if over.did else []
        if over.error:
            return [
                *kept,
                error_policy.given_up(record, over.error, over.traceback, over.outputs),
            ]
        if over.did:
            error_policy.done(record)
            return [*kept, RecordCompleted(record, Answer(over.outputs))]
        if error_policy.failures(record).deaths > 1 and not error_policy.may_retry(record):
            return [error_policy.given_up(record, over.died)]
        self.put(record)  # all processors that had it are gone, and none has processed it
        return []

    def _kept(self, record: OpenRecord) -> list[NotKept]:
        """Keep a record for processors that start later, if it has a key and is the latest."""
        reason = self._lessons.latest.keep(record.number, record.record)
        return [NotKept(record.record, reason)] if reason else []

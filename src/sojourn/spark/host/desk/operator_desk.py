"""The desk of one operator: assigns its records to its processors.

Events go in, instructions come out, which the host carries out. All processors share one queue.
So while a processor is idle, a record waits only for earlier records of its key; a broadcast
record waits for every processor. While many records wait for short services, processors on
other nodes get the next records before they are done with the previous ones, which hides the
round trip.
"""

from collections.abc import Sequence

from sojourn.app.operator import OnError
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.batch_size import Portions
from sojourn.spark.host.desk.broadcast_backfill import Latest, Lessons
from sojourn.spark.host.desk.broadcasts import Broadcasts
from sojourn.spark.host.desk.error_policy import ErrorPolicy
from sojourn.spark.host.desk.events import (
    NodeCame,
    NodeLeft,
    OperatorEvent,
    PlacementAsked,
    ProcessorDone,
    ProcessorEnded,
    ProcessorReady,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    Give,
    KillProcessor,
    OperatorInstruction,
    RecordCompleted,
    StartProcessor,
)
from sojourn.spark.host.desk.keyed_queue import KeyedQueue
from sojourn.spark.host.desk.processors import Processor, Processors
from sojourn.spark.wire.processor import Answer, Result
from sojourn.spark.wire.record import Record

# Records that wait for their key keep no processor busy, so others are fetched in their
# place: enough that a frequent key does not starve the processors, and not the whole stream.
_MOST_BEHIND, _MOST_BEHIND_EACH = 100, 10
# If this many nodes in a row are lost while they process a record, the record is to blame.
_MOST_LOST = 3


class OperatorDesk:
    """The open records of one operator, and its processors.

    At least *ahead* records more than processors are prefetched, and more if services are
    short: enough to hide the round trip to relays, and few, because records not fetched yet
    wait in Kafka, where they can be seen.
    """

    def __init__(self, *, on_error: OnError | None = None, ahead: int = 2) -> None:
        self.error_policy = ErrorPolicy(on_error or OnError())
        self._portions = Portions(ahead=ahead)
        self._queue = KeyedQueue(self.error_policy.alone)
        self.processors = Processors()
        self._lessons = Lessons(self.processors)
        self._broadcasts = Broadcasts(self.processors, self._lessons, self.error_policy)
        self._in_service = 0

    # -- queries --------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Records that no processor has."""
        return len(self._queue) + self._broadcasts.waiting

    @property
    def room(self) -> int:
        """Records to fetch so that processors stay busy; negative if there are too many."""
        running, ahead = self.processors.running, self._portions.ahead(self.processors.by_node)
        behind = min(self._queue.behind, _MOST_BEHIND + _MOST_BEHIND_EACH * running)
        return running + ahead - (self.waiting - behind + self._in_service)

    @property
    def latest(self) -> Latest:
        """The latest broadcast record of each key, which new processors get first."""
        return self._lessons.latest

    # -- records --------------------------------------------------------------------------

    def put(self, record: OpenRecord) -> None:
        """Enqueue a record; `turn` gives it to a processor."""
        if record.record.everyone:
            self._broadcasts.put(record)
        else:
            self._queue.put(record)

    def forget(self, latest: Sequence[Record] = ()) -> None:
        """Forget all records but the *latest* broadcast record of each key.

        Processors finish the records they have, and the results are ignored. Before they get
        another record they are backfilled with *latest*: it is not known which they have seen.
        """
        self._queue = KeyedQueue(self.error_policy.alone)
        self._broadcasts.forget()
        self.error_policy.forget()
        for _, processor in self.processors:
            processor.forgotten = bool(processor.records)
        self._lessons.forget(latest)

    # -- events ---------------------------------------------------------------------------

    def handle(self, event: OperatorEvent, now_s: float) -> list[OperatorInstruction]:
        """Return the instructions that follow from an event, with work for idle processors."""
        match event:
            case ProcessorDone(_, number, results):
                done = self._done(number, results, now_s)
            case ProcessorReady(_, number):
                done = self._ready(number, now_s)
            case ProcessorEnded():
                done = self._ended(event, now_s)
            case PlacementAsked(_, on):
                self.processors.place(on)
                done = [*self._started(now_s), *self._settled()]
            case NodeCame(node):
                self.processors.node_came(node)
                done = self._started(now_s)
            case NodeLeft(node):
                done = self._node_left(node, now_s)
            case TimePassed():
                done = self._started(now_s)
        done += self.turn(now_s)
        return done

    def _ready(self, number: int, now_s: float) -> list[OperatorInstruction]:
        processor = self.processors.get(number)
        if processor is None:
            return [KillProcessor(number)]
        self.processors.ready(number)
        self._lessons.begin(processor)
        self._broadcasts.join(processor)
        return [*self._lessons.told(number, processor, now_s), *self._settled()]

    def _done(
        self, number: int, results: Sequence[Result], now_s: float
    ) -> list[OperatorInstruction]:
        processor, several = self.processors.get(number), len(results)
        if processor is None:
            return []  # a late answer from a node that was given up
        if processor.learning:
            del processor.learning[:several]
            return [*self._lessons.told(number, processor, now_s)]
        answered = processor.records[:several]
        processor.records = processor.records[several:]
        self._portions.returned(processor, results, now_s)
        processor.since_s, processor.waits_for_first = now_s, False
        self._in_service -= several
        if processor.forgotten:
            processor.forgotten = bool(processor.records)
            answered, results = [], ()
        done = self._answered(processor, answered, results)
        if not processor.records:
            done += self._gone(number) if processor.going else []
            self.processors.idles(number)
        return done

    def _ended(self, ended: ProcessorEnded, now_s: float) -> list[OperatorInstruction]:
        """Remove a processor that has ended, and decide on its records.

        If it had several, any of them may be the cause: each is retried alone. A record that
        was alone is retried after its first death; after another one, or if it exceeded the
        time limit, `on_error` decides.
        """
        processor = self.processors.remove(ended.processor)
        reason, late = ended.reason, ended.late
        if processor is None:
            return []
        if not processor.ready:
            self.processors.not_started(processor.node, reason, now_s, starved=ended.starved)
        done: list[OperatorInstruction] = [*self._lessons.failed(processor, reason)]
        records = self._taken_from(processor)
        back: list[OpenRecord] = []
        for record in records:
            failures = self.error_policy.failures(record)
            failures.deaths += not late
            if record.record.everyone:
                done += self._broadcasts.missed(record, reason, late=late)
            elif len(records) > 1 or (failures.deaths == 1 and not late):
                self.error_policy.retried += 1
                self.error_policy.alone.add(record.number)
                back.append(record)
            elif self.error_policy.may_retry(record):
                back.append(record)
            else:
                done += self._given_up(record, reason)
        self._queue.give_back(back)
        done += self._broadcasts.leave(processor)
        return [*done, *self._started(now_s)]

    def _node_left(self, node: str, now_s: float) -> list[OperatorInstruction]:
        """Remove the processors of a lost node, and requeue their records.

        A record is blamed only if nodes are lost with it repeatedly: some records take more
        memory than a node has.
        """
        done: list[OperatorInstruction] = []
        back: list[OpenRecord] = []
        self._portions.forget(node)
        for _, processor in self.processors.node_left(node):
            for record in self._taken_from(processor):
                if record.record.everyone:
                    done += self._broadcasts.missed(record)
                    continue
                failures = self.error_policy.failures(record)
                failures.lost += 1
                if failures.lost < _MOST_LOST or self.error_policy.may_retry(record):
                    back.append(record)
                else:
                    reason = f"{failures.lost} nodes in a row were lost while they worked on it"
                    done += self._given_up(record, reason)
            done += self._broadcasts.leave(processor)
        self._queue.give_back(back)
        return [*done, *self._started(now_s)]

    # -- inside: records ------------------------------------------------------------------

    def _taken_from(self, processor: Processor) -> list[OpenRecord]:
        """Remove and return the unfinished records of a processor that is gone.

        None of them is open any more if they were forgotten in the meantime.
        """
        records, processor.records = processor.records, []
        self._in_service -= len(records)
        return [] if processor.forgotten else records

    def _given_up(
        self, record: OpenRecord, reason: str, traceback: str = ""
    ) -> list[OperatorInstruction]:
        """Apply the error policy to a record that is not retried."""
        given_up = self.error_policy.given_up(record, reason, traceback)
        if isinstance(given_up, RecordCompleted):
            self._queue.release(record)
        return [given_up]

    def _answered(
        self, processor: Processor, records: Sequence[OpenRecord], results: Sequence[Result]
    ) -> list[OperatorInstruction]:
        """Complete, retry or give up records by their results."""
        done: list[OperatorInstruction] = []
        back: list[OpenRecord] = []
        for record, result in zip(records, results, strict=True):
            if result.skipped:
                back.append(record)
                continue
            self._portions.served(result.took_s)
            if record.record.everyone:
                done += self._broadcasts.did_its_part(processor, record, result)
            elif not result.error:
                self._queue.release(record)
                self.error_policy.done(record)
                answer = Answer(result.outputs, state=result.state, reminders=result.reminders)
                done.append(RecordCompleted(record, answer))
            elif self.error_policy.may_retry(record):
                back.append(record)
            else:
                done += self._given_up(record, result.error, result.traceback)
        self._queue.give_back(back)
        return done

    # -- inside: processors ---------------------------------------------------------------

    def _started(self, now_s: float) -> list[OperatorInstruction]:
        """Start missing processors, unless the back-off after a failure forbids it."""
        asked = self.processors.to_start(now_s)
        return [StartProcessor(name, node) for name, node in asked]

    def _settled(self) -> list[OperatorInstruction]:
        """Retire surplus processors, as far as their replacements are ready."""
        done: list[OperatorInstruction] = []
        for name in self.processors.surplus():
            done += self._let_go(name)
        return done

    def _let_go(self, name: int) -> list[OperatorInstruction]:
        processor = self.processors.get(name)
        if processor is None:
            return []
        processor.going = True
        self.processors.withdraw(name)
        done: list[OperatorInstruction] = [*self._broadcasts.leave(processor)]
        return done if processor.records else [*done, *self._gone(name)]

    def _gone(self, name: int) -> list[OperatorInstruction]:
        self.processors.remove(name)
        return [KillProcessor(name)]

    # -- inside: work ---------------------------------------------------------------------

    def turn(self, now_s: float, *, at_once: bool = False) -> list[OperatorInstruction]:
        """Give records to idle processors; *at_once* if the records have just arrived."""
        done: list[OperatorInstruction] = []
        if self._lessons.are_owed:
            done += self._lessons.told_again(now_s)
        passed_by: list[int] = []
        queued = len(self._queue) > 0
        while (queued or self._broadcasts.in_lanes) and (idle := self.processors.next_idle()):
            name, processor = idle
            if processor.lane:
                processor.records = [self._broadcasts.next_of(processor)]
            elif queued:
                processor.records = self._queue.take(
                    self._portions.at_once(
                        waiting=len(self._queue), running=self.processors.running
                    )
                )
                queued = bool(processor.records)
            if processor.records:
                processor.since_s, processor.waits_for_first = now_s, True
                self._in_service += len(processor.records)
                records = tuple(each.record for each in processor.records)
                done.append(Give(name, records, at_once=at_once))
            else:
                passed_by.append(name)
        for name in passed_by:  # still idle: all records wait for their keys
            self.processors.idles(name)
        if queued and self._portions.has_far_nodes:
            done += self._given_ahead()
        return done

    def _given_ahead(self) -> list[OperatorInstruction]:
        """Give distant processors their next records before they are done.

        Only the excess over one record for each processor: an idle one must find a record.
        """
        done: list[OperatorInstruction] = []
        for name, processor, most in self._far():
            spare = len(self._queue) - self._queue.behind - self.processors.running
            if spare <= 0:
                break
            taken = self._queue.take(min(most - len(processor.records), spare))
            if not taken or taken[0].number in self.error_policy.alone:
                self._queue.give_back(taken)
                break
            processor.records = [*processor.records, *taken]
            self._in_service += len(taken)
            records = tuple(each.record for each in taken)
            done.append(Give(name, records, ahead=True))
        return done

    def _far(self) -> list[tuple[int, Processor, int]]:
        """Return busy processors with room for more records, and how many each may have.

        Those with the fewest records come first.
        """
        by_node = self.processors.by_node
        at_a_time = {node: self._portions.at_a_time(node) for node in by_node}
        if max(at_a_time.values(), default=1) == 1:
            return []
        far = [
            (name, processor, at_a_time[processor.node])
            for name, processor in self.processors
            if name in self.processors.here
            and 0 < len(processor.records) < at_a_time[processor.node]
            and not (processor.lane or processor.forgotten)
            and processor.records[0].number not in self.error_policy.alone
        ]
        return sorted(far, key=lambda each: len(each[1].records))

"""The records of one operator and its processors: who gets which record.

Events go in, instructions come out; another part carries them out. There is one queue for
all processors, so a record never waits while one is idle. Only a record with a key waits for
those of its key, and one for everyone for all processors. While many wait for short services,
processors on other nodes have the next record before they are done with the one before.
"""

from collections.abc import Sequence

from sojourn.app.operator import OnError
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.batch_size import Portions
from sojourn.spark.host.desk.broadcast_backfill import Lessons
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
    Completed,
    Give,
    KillProcessor,
    OperatorInstruction,
    StartProcessor,
)
from sojourn.spark.host.desk.keyed_queue import KeyedQueue
from sojourn.spark.host.desk.processors import Processor, Processors
from sojourn.spark.wire.processor import Answer, Result
from sojourn.spark.wire.record import Record

__all__ = ["OperatorDesk"]

# Records that wait for their key keep no processor busy, so others are fetched in their
# place: enough that one frequent key starves nobody, and not the whole stream.
_MOST_BEHIND, _MOST_BEHIND_EACH = 100, 10
# So many nodes in a row are not lost by chance while they work on a record.
_MOST_LOST = 3


class OperatorDesk:
    """The records in hand of one operator, and its processors.

    *ahead* is how many records more than processors are in hand, or more if they take no
    time: enough to bridge the way here, and few, because what is not in hand waits where it
    can be seen. The *latest* of each key, of what is for everyone, is told to processors that
    start later. *error_policy* says what happens to those that cannot be done.
    """

    def __init__(self, *, on_error: OnError | None = None, ahead: int = 2) -> None:
        self.error_policy = ErrorPolicy(on_error or OnError())
        self._portions = Portions(ahead=ahead)
        self._queue = KeyedQueue(self.error_policy.alone)
        self.processors = Processors()
        self._lessons = Lessons(self.processors)
        self._broadcasts = Broadcasts(self.processors, self._lessons, self.error_policy)
        self._in_service = 0

    # -- what can be asked ----------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Records in hand that no processor works on."""
        return len(self._queue) + self._broadcasts.waiting

    @property
    def room(self) -> int:
        """Records that are wanted in hand, so that processors have work and little more."""
        running, ahead = self.processors.running, self._portions.ahead(self.processors.by_node)
        behind = min(self._queue.behind, _MOST_BEHIND + _MOST_BEHIND_EACH * running)
        return running + ahead - (self.waiting - behind + self._in_service)

    @property
    def latest(self) -> list[Record]:
        """What processors that start later are told first."""
        return self._lessons.latest.records

    # -- records --------------------------------------------------------------------------

    def put(self, record: OpenRecord) -> None:
        """Take a record in hand; `turn` gives it to a processor."""
        if record.record.everyone:
            self._broadcasts.put(record)
        else:
            self._queue.put(record)

    def keeps(self, record: Record) -> bool:
        """Return whether processors that start later are told a record."""
        return self._lessons.latest.has(record)

    def forget(self, latest: Sequence[Record] = ()) -> None:
        """Forget all records but the *latest* of each key, of what is for everyone.

        Processors go on with those that they are at, for nobody. Those that run are told the
        *latest* as well before they get another record: nobody knows what they know.
        """
        self._queue = KeyedQueue(self.error_policy.alone)
        self._broadcasts.forget()
        self.error_policy.forget()
        for _, processor in self.processors:
            processor.forgotten = bool(processor.records)
        self._lessons.forget(latest)

    # -- events ---------------------------------------------------------------------------

    def handle(self, event: OperatorEvent, now_s: float) -> list[OperatorInstruction]:
        """Decide on an event; then idle processors are given work."""
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
            return []  # its node was gone when it said so
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
        """Do without a processor.

        Of several records nobody knows which it died of: each is tried again alone. One that
        was alone is tried once more; if its processor was ended because it was late, it had
        its chance.
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
        """Do without a node.

        Its records are not to blame for it, unless that happens to one again and again: some
        take more memory than a node has.
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
        """Take from a processor that is gone the open records that it was not done with."""
        records, processor.records = processor.records, []
        self._in_service -= len(records)
        return [] if processor.forgotten else records

    def _given_up(
        self, record: OpenRecord, reason: str, traceback: str = ""
    ) -> list[OperatorInstruction]:
        """Do with a record that failed what the operator's policy says."""
        given_up = self.error_policy.given_up(record, reason, traceback)
        if isinstance(given_up, Completed):
            self._queue.release(record)
        return [given_up]

    def _answered(
        self, processor: Processor, records: Sequence[OpenRecord], results: Sequence[Result]
    ) -> list[OperatorInstruction]:
        """Decide what becomes of records by what a processor made of them."""
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
                done.append(Completed(record, answer))
            elif self.error_policy.may_retry(record):
                back.append(record)
            else:
                done += self._given_up(record, result.error, result.traceback)
        self._queue.give_back(back)
        return done

    # -- inside: processors ---------------------------------------------------------------

    def _started(self, now_s: float) -> list[OperatorInstruction]:
        """Start what is wanted, unless that failed a moment ago."""
        asked = self.processors.to_start(now_s)
        return [StartProcessor(name, node) for name, node in asked]

    def _settled(self) -> list[OperatorInstruction]:
        """Let those go that are not wanted, as far as others have come in their place."""
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
        """Give idle processors work: *at_once* if it has just come."""
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
        for name in passed_by:
            self.processors.idles(name)
        if queued and self._portions.has_far_nodes:
            done += self._given_ahead()
        return done

    def _given_ahead(self) -> list[OperatorInstruction]:
        """Give processors that are far away the next records before they are done.

        Only while more wait than there are processors: whoever is idle first finds one.
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
        """Return who could have more records, and how many in all: who has fewest first."""
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

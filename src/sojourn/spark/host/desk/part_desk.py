"""The desk of a part: operators that send each other records within one process.

Records enter from Spark and leave to it through relays; in between, outputs of the processors
of one operator enter the queue of the next. Events go in, instructions come out.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import time

import msgspec

from sojourn.spark.host.batch.cut import Cut, OpenRecord
from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.desk.admission import Admission, Limits
from sojourn.spark.host.desk.events import (
    BatchEvent,
    CutSaved,
    DrainAsked,
    Event,
    NodeCame,
    NodeLeft,
    OperatorEvent,
    PlacementAsked,
    ProcessorDone,
    ProcessorEnded,
    ProcessorReady,
    RelayCame,
    RelayEnded,
    RelayLeft,
    RelaysCaughtUp,
    RelaysCounted,
    RowsCame,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    AtOperator,
    CountArrival,
    CountOutputs,
    Give,
    Instruction,
    RecordCompleted,
    RefuseRelay,
    Restore,
    StopPart,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_graph import PartGraph, as_record
from sojourn.spark.host.desk.visits import OpenTrees, Visits
from sojourn.spark.host.state.expiry import Expiry
from sojourn.spark.wire.processor import Answer
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult, Row


class PartDesk:
    """The desks of a part's operators, and the ledger of its open records.

    The states of an operator in *ttl_s* expire that long after their last change, by the clock
    of the ledger. *clock* is the wall clock, for the times of records.
    """

    def __init__(
        self,
        graph: PartGraph,
        operators: Mapping[str, OperatorDesk],
        ledger: Ledger,
        *,
        limits: Limits | None = None,
        ttl_s: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self._graph, self._operators, self._ledger = graph, operators, ledger
        self._limits, self._clock = limits or Limits(), clock
        ttl_us = {name: round(each_s * 1e6) for name, each_s in (ttl_s or {}).items()}
        self._expiry = Expiry(ledger.state, ttl_us)
        self._trees, self.visits = OpenTrees(), Visits()
        self.nulls: Counter[str] = Counter()
        """Messages without a value that an operator does not read, by operator."""
        ledger.latest = self._latest
        self.admission = Admission(graph, operators, self.visits, ledger.spill, self._limits)

    @property
    def inside(self) -> int:
        """Number of records that are not done, in memory and on disk."""
        return len(self._ledger.open) + len(self._ledger.spill)

    @property
    def due_s(self) -> float | None:
        """When `TimePassed` is due next, by the part's clock; None if nothing is scheduled."""
        if self._ledger.draining or not self._graph.stateful:
            return None
        if self._expiry.is_behind(self._ledger.clock.now_us()):
            return 0.0  # immediately
        due_us = self._ledger.reminders.next_us
        return None if due_us is None else due_us / 1e6

    def handle(self, event: Event, now_s: float) -> Sequence[Instruction]:
        """Return the instructions that follow from an event."""
        done: Sequence[Instruction]
        match event:
            case ProcessorDone() | ProcessorReady() | ProcessorEnded() | PlacementAsked():
                done = self._at(event.operator, event, now_s)
            case RowsCame(relay, rows):
                done = self._rows_came(relay, rows, now_s)
            case NodeCame() | NodeLeft():
                done = self._everywhere(event, now_s)
            case TimePassed():
                done = [*self._due(now_s), *self._everywhere(event, now_s)]
            case RelayCame():
                done = self._relay_came(event, now_s)
            case RelayLeft(relay):
                done = self._relay_left(relay)
            case _:
                done = self._at_ledger(event)
        return done

    # -- relays ---------------------------------------------------------------------------

    def _relay_came(self, came: RelayCame, now_s: float) -> list[Instruction]:
        done: list[Instruction] = []
        for instruction in self._ledger.relay_came(came.relay, came.cut, came.task):
            match instruction:
                case Restore(cut):
                    self._restored(cut)
                case RefuseRelay(other):
                    self.admission.relay_left(other)
            done.append(instruction)
        if came.relay in self._ledger.relays:
            self.admission.relay_came(came.relay)
        done += self._remind()[0]
        return [*done, *self._turned(self._operators, now_s)]

    def _rows_came(self, relay: int, rows: Iterable[Row], now_s: float) -> list[Instruction]:
        came, into = self._remind()  # due reminders precede new records of their keys
        for row in rows:
            root, record = Root(row.partition, row.offset), self._timed(row.record)
            stream = record.stream if row.refused is None else None
            self.admission.row_came(relay, row.partition[0], stream)
            if not self._ledger.takes(relay, root, row.provenance):
                continue
            self.visits.entered(row.partition[0])
            if (passed := self._graph.passing_through(root, row, record)) is not None:
                came += self._ledger.leaves(passed)
                continue
            for read in self._read(root, record, row.keys, row.only, null=row.null):
                self._enter(read)
                into.add(read.operator)
                came.append(CountArrival(read.operator, read.record))
        return [*came, *self._turned(into, now_s)]

    def _relay_left(self, relay: int) -> Sequence[Instruction]:
        self.admission.relay_left(relay)
        refused = self._ledger.relay_left(relay)
        for instruction in refused:
            if isinstance(instruction, RefuseRelay):
                self.admission.relay_left(instruction.relay)
        return refused

    def _at_ledger(self, event: BatchEvent) -> Sequence[Instruction]:
        match event:
            case RelayEnded(relay):
                return self._ledger.relay_ended(relay)
            case RelaysCounted(cut, relays):
                return self._ledger.relays_are(cut, relays)
            case RelaysCaughtUp():
                return self._ledger.hand_on()
            case CutSaved(cut):
                return self._ledger.saved(cut)
            case DrainAsked():
                return self._ledger.drain()

    def _latest(self) -> dict[str, tuple[Record, ...]]:
        return {
            name: tuple(records)
            for name, desk in self._operators.items()
            if (records := desk.latest.records)
        }

    # -- operators --------------------------------------------------------------------------

    def _everywhere(self, event: OperatorEvent, now_s: float) -> list[Instruction]:
        done: list[Instruction] = []
        for operator in self._operators:
            done += self._at(operator, event, now_s)
        return done

    def _at(self, operator: str, event: OperatorEvent, now_s: float) -> list[Instruction]:
        """Let the desk of an operator decide, and route the records that it completes."""
        done: list[Instruction] = []
        into: set[str] = set()
        for instruction in self._operators[operator].handle(event, now_s):
            match instruction:
                case RecordCompleted(record, answer):
                    into.update(self._sent(record, answer, done))
                case StopPart():
                    done.append(instruction)
                case Give():
                    done.append(AtOperator(operator, self._lent(operator, instruction)))
                case _:
                    done.append(AtOperator(operator, instruction))
        if self._ledger.spill.waiting(operator):
            into.add(operator)
        return [*done, *self._turned(into, now_s, changed=operator)]

    def _due(self, now_s: float) -> list[Instruction]:
        """Enqueue reminders that are due, and remove expired states."""
        done, into = self._remind()
        now_us = self._ledger.clock.now_us()
        for change in () if self._ledger.draining else self._expiry.due(now_us):
            self._ledger.changed(*change)
        return [*done, *self._turned(into, now_s)]

    # -- inside -----------------------------------------------------------------------------

    def _restored(self, cut: Cut) -> None:
        """Rebuild the queues from the open records that the ledger has restored."""
        self._expiry.restore()
        for name, desk in self._operators.items():
            desk.forget(cut.latest.get(name, ()))
        self._trees = OpenTrees()
        self.admission.forget()
        # Records on disk arrived after those in memory. Putting an open record there would
        # break that order, unless the disk is empty.
        spills = not len(self._ledger.spill)
        for number, record in list(self._ledger.open.items()):
            everyone = record.record.everyone
            if spills and not everyone and self.admission.spills(record.operator):
                self._ledger.put_back(number)
            else:
                self._put(record)

    def _remind(self) -> tuple[list[Instruction], set[str]]:
        """Enqueue reminders that are due, each behind the records of its key.

        Return their arrivals and the operators. Of many that are due together, the rest
        follows with later events. While the application drains, reminders stay pending.
        """
        came: list[Instruction] = []
        into: set[str] = set()
        if self._ledger.draining:
            return came, into
        for change, record in self._ledger.reminders.due():
            self._ledger.changed(*change)
            topic = record.record.position.rsplit("/", 2)[0]  # of the record that set it
            self.visits.visited(topic, record.operator)
            self._enter(record)
            into.add(record.operator)
            came.append(CountArrival(record.operator, record.record))
        return came, into

    def _enter(self, record: OpenRecord) -> None:
        """Enqueue a record at its operator: on disk if the operator's share is used up."""
        if not record.record.everyone and self.admission.spills(record.operator):
            self._ledger.spilled(record)
        else:
            self._put(self._ledger.entered(record))

    def _put(self, record: OpenRecord) -> None:
        self._trees.entered(record.root)
        self.admission.entered(record.operator, record.record)
        self._operators[record.operator].put(record)

    def _fetch(self, operator: str) -> None:
        """Fetch spilled records of an operator while memory has room for them."""
        while self.admission.fetches(operator):
            for record in self._ledger.fetched(operator):
                self._put(record)

    def _timed(self, record: Record) -> Record:
        """Set the times of a record to now if they are unknown."""
        if record.written_s and record.birth_s:
            return record
        now_s = self._clock()
        return msgspec.structs.replace(
            record, written_s=record.written_s or now_s, birth_s=record.birth_s or now_s
        )

    def _read(
        self,
        root: Root,
        record: Record,
        keys: Mapping[str, str | None],
        only: str | None = None,
        *,
        null: bool = False,
    ) -> list[OpenRecord]:
        """Return one open record for each reader of the stream, or for *only* one; count them.

        *keys* has the key of the record by reader. *null* is a message without a value, which
        not all operators read.
        """
        read: list[OpenRecord] = []
        for reader in self._graph.readers.get(record.stream, ()):
            if only is not None and reader != only:
                continue
            if null and reader not in self._graph.nulls:
                self.nulls[reader] += 1
                continue
            self.visits.visited(root.partition[0], reader)
            as_read = self._graph.as_read(record, reader, keys.get(reader))
            read.append(OpenRecord(root, reader, as_read))
        return read

    def _lent(self, operator: str, give: Give) -> Give:
        """Add the states of its keys to the records for a processor.

        No other processor has these states: only one at a time has records of a key.
        """
        if operator not in self._graph.stateful:
            return give
        keys = {record.key for record in give.records if record.key is not None}
        now_us = self._ledger.clock.now_us()
        states = {key: self._expiry.of(operator, key, now_us) for key in keys}
        return msgspec.structs.replace(give, states=states)

    def _sent(
        self, completed: OpenRecord, answer: Answer, done: list[Instruction]
    ) -> Iterable[str]:
        """Route the outputs of a record; return the operators whose queues they enter.

        Append to *done* what must be counted, saved or sent to relays.
        """
        root, operator, parent = completed.root, completed.operator, completed.record
        # A loop that never terminates would fill the part, so its record fails by `on_error`.
        if self._trees.made(root) + len(answer.outputs) > self._limits.of_root:
            error = (
                f"its root has produced more than {self._limits.of_root} records; check that "
                "its loop terminates"
            )
            error_policy = self._operators[operator].error_policy
            if error_policy.on_error.then == "stop":
                done.append(StopPart(completed, error))
                return ()
            error_policy.dead += 1
            answer = Answer((), error, "", 1)
        self.admission.left(operator, parent)
        written_s = self._clock()
        children: list[Record] = []
        records: list[OpenRecord] = []
        results: list[Leaving] = []
        for at, output in enumerate(answer.outputs):
            child = as_record(parent, operator, at, output, written_s)
            children.append(child)
            records += self._read(root, child, output.keys)
            if output.stream in self._graph.leaving:
                results.append(Leaving(root, child))
        if answer.dead:
            inner = parent.stream in self._graph.inner
            letter = DeadResult(
                operator, parent, answer.dead, answer.traceback, answer.tries, inner
            )
            results.append(Leaving(root, None, letter))
        # Outputs open before their parent closes, else its tree would end in between.
        for record in records:
            self._enter(record)
        self._keep(operator, parent, answer)
        if parent.everyone and self._operators[operator].latest.has(parent):
            self._ledger.kept(operator, parent)
        handed = self._ledger.done(completed.number, results)
        self._trees.done(root)
        done.append(CountOutputs(operator, parent, tuple(children)))
        done += [CountArrival(record.operator, record.record) for record in records]
        done += handed
        return {record.operator for record in records}

    def _keep(self, operator: str, record: Record, answer: Answer) -> None:
        """Save the state and the reminders that an answer sets for the key of its record."""
        if record.key is None or operator not in self._graph.stateful:
            return
        if answer.state is not None:
            now_us = self._ledger.clock.now_us()
            for change in self._expiry.changes(operator, record.key, answer.state, now_us):
                self._ledger.changed(*change)
        for change in self._ledger.reminders.asked(operator, record, answer.reminders):
            self._ledger.changed(*change)

    def _turned(
        self, operators: Collection[str], now_s: float, *, changed: str | None = None
    ) -> list[Instruction]:
        """Give new records to idle processors of *operators*, and credit to relays.

        Operator *changed* may also want more records.
        """
        given: list[Instruction] = []
        for name in sorted(operators):  # a fixed order, so that histories can be replayed
            self._fetch(name)
            given += [
                AtOperator(name, self._lent(name, instruction))
                for instruction in self._operators[name].turn(now_s, at_once=True)
                if isinstance(instruction, Give)
            ]
        affected = operators if changed is None else {*operators, changed}
        return [*given, *self.admission.grants(affected)]

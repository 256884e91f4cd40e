"""A part: operators that send records to each other in one process, without leaving it.

Records enter from Spark through relays and leave through them; in between they go from the
processor of one operator into the queue of the next. Events go in, instructions come out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from sojourn.host.cut import Leaving, OpenRecord, Root
from sojourn.host.in_hand import RecordInHand
from sojourn.host.instructions import Give, Keep, KillProcessor, NotKept, StartProcessor
from sojourn.host.ledger import Arrival, CutInstruction, Ledger, RefuseRelay, Restore
from sojourn.host.messages import Answer, OutputRecord, Record, Result
from sojourn.host.operator_desk import Completed, OperatorDesk, OperatorInstruction, Stopping
from sojourn.host.tracing import child_identity

__all__ = [
    "AtOperator",
    "DeadLetter",
    "GrantRelay",
    "PartDesk",
    "PartGraph",
    "PartInstruction",
    "StopPart",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGraph:
    """Who reads what.

    *readers* are the operators that read a stream, *leaving* the streams that are written to
    topics, *everyone* the operators with the streams that all their processors get.
    """

    readers: Mapping[str, tuple[str, ...]]
    leaving: frozenset[str] = frozenset()
    everyone: frozenset[tuple[str, str]] = field(default=frozenset())


class DeadLetter(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """A record that *operator* could not do, and why."""

    operator: str
    record: Record
    error: str
    traceback: str
    tries: int


@dataclass(frozen=True, slots=True)
class AtOperator:
    """Do something at an operator."""

    operator: str
    instruction: Give | StartProcessor | KillProcessor | Keep | NotKept


@dataclass(frozen=True, slots=True)
class GrantRelay:
    """Let a relay hand over so many records more."""

    relay: int
    number: int


@dataclass(frozen=True, slots=True)
class StopPart:
    """Stop the application: a record cannot be done."""

    operator: str
    record: Record
    reason: str
    traceback: str


PartInstruction = CutInstruction | AtOperator | GrantRelay | StopPart


class PartDesk:
    """The operators of a part by name, and the ledger of what is open in it.

    No more than *most* records are inside at the same time, unless those that were taken send
    on more: then none is taken until there is room.
    """

    def __init__(
        self,
        graph: PartGraph,
        operators: Mapping[str, OperatorDesk],
        ledger: Ledger,
        *,
        most: int = 10_000,
    ) -> None:
        self._graph, self._operators, self._ledger = graph, operators, ledger
        self._most = most
        self._places: dict[RecordInHand, int] = {}
        self._streams: dict[int, str] = {}
        self._credit: dict[int, int] = {}

    @property
    def inside(self) -> int:
        """Records that are not done."""
        return len(self._ledger.open)

    # -- relays ---------------------------------------------------------------------------

    def relay_came(
        self, relay: int, arrival: Arrival, stream: str, now_s: float
    ) -> list[PartInstruction]:
        """Return what to do when a relay begins to bring records of *stream*."""
        done: list[PartInstruction] = []
        for instruction in self._ledger.relay_came(relay, arrival):
            match instruction:
                case Restore():
                    self._restored()
                case RefuseRelay(other):
                    self._forget(other)
            done.append(instruction)
        if self._ledger.knows(relay):
            self._streams[relay], self._credit[relay] = stream, 0
        return [*done, *self._turned(self._operators, now_s)]

    def rows_came(
        self, relay: int, rows: Iterable[tuple[int, Record]], now_s: float
    ) -> list[PartInstruction]:
        """Return what to do with rows, by their offsets."""
        into: set[str] = set()
        for offset, record in rows:
            self._credit[relay] = max(0, self._credit.get(relay, 0) - 1)
            root = self._ledger.takes(relay, offset)
            if root is not None:
                for read in self._read(root, record):
                    self._put(self._ledger.entered(read), read)
                    into.add(read.operator)
        return self._turned(into, now_s)

    def relay_ended(self, relay: int) -> list[PartInstruction]:
        """Return what to do when a relay has handed over all that Spark has read."""
        return [*self._ledger.relay_ended(relay)]

    def relay_left(self, relay: int) -> None:
        """Do without a relay."""
        self._ledger.relay_left(relay)
        self._forget(relay)

    def _forget(self, relay: int) -> None:
        self._streams.pop(relay, None)
        self._credit.pop(relay, None)

    # -- processors -------------------------------------------------------------------------

    def scaled(self, operator: str, wanted: int, now_s: float) -> list[PartInstruction]:
        """Return what to do to have *wanted* processors."""
        return self._done(operator, self._operators[operator].scaled(wanted, now_s), now_s)

    def time_passed(self, now_s: float) -> list[PartInstruction]:
        """Return what to do by now: start again what could not be started before."""
        return [
            instruction
            for name, desk in self._operators.items()
            for instruction in self._done(name, desk.time_passed(now_s), now_s)
        ]

    def processor_ready(self, operator: str, name: int, now_s: float) -> list[PartInstruction]:
        """Return what to do when a processor can take its first record."""
        desk = self._operators[operator]
        return self._done(operator, desk.processor_ready(name, now_s), now_s)

    def processor_done(
        self, operator: str, name: int, results: Sequence[Result], now_s: float
    ) -> list[PartInstruction]:
        """Return what to do when a processor is done with the first of what it was given."""
        desk = self._operators[operator]
        return self._done(operator, desk.processor_done(name, results, now_s), now_s)

    def processor_died(
        self, operator: str, name: int, reason: str, now_s: float, *, late: bool = False
    ) -> list[PartInstruction]:
        """Return what to do when a processor is gone, whatever it was doing."""
        desk = self._operators[operator]
        return self._done(operator, desk.processor_died(name, reason, now_s, late=late), now_s)

    # -- inside -----------------------------------------------------------------------------

    def _restored(self) -> None:
        """Go on with what the ledger has restored."""
        for desk in self._operators.values():
            desk.forget()
        self._places = {}
        for place, record in self._ledger.open.items():
            self._put(place, record)

    def _put(self, place: int, record: OpenRecord) -> None:
        self._places[self._operators[record.operator].put(record.record)] = place

    def _read(self, root: Root, record: Record) -> list[OpenRecord]:
        """Return a record for each operator that reads its stream."""
        return [
            OpenRecord(root, reader, self._as_read(reader, record))
            for reader in self._graph.readers.get(record.stream, ())
        ]

    def _as_read(self, reader: str, record: Record) -> Record:
        everyone = (reader, record.stream) in self._graph.everyone
        return msgspec.structs.replace(record, everyone=everyone) if everyone else record

    def _done(
        self, operator: str, instructions: Iterable[OperatorInstruction], now_s: float
    ) -> list[PartInstruction]:
        """Return what an operator's instructions mean for the others and for relays."""
        done: list[PartInstruction] = []
        into: set[str] = set()
        for instruction in instructions:
            match instruction:
                case Completed(job, answer):
                    sent, then = self._sent(operator, job, answer, now_s)
                    into.update(record.operator for record in sent)
                    done += then
                case Stopping(job, reason, traceback):
                    done.append(StopPart(operator, job.record, reason, traceback))
                case _:
                    done.append(AtOperator(operator, instruction))
        return [*done, *self._turned(into, now_s)]

    def _sent(
        self, operator: str, job: RecordInHand, answer: Answer, now_s: float
    ) -> tuple[list[OpenRecord], list[CutInstruction]]:
        """Pass on what came of a record: into queues, and out of the part."""
        place = self._places.pop(job)
        root = self._ledger.open[place].root
        records: list[OpenRecord] = []
        results: list[Leaving] = []
        for number, output in enumerate(answer.outputs):
            child = _child(job.record, operator, number, output, now_s)
            records += self._read(root, child)
            if output.stream in self._graph.leaving:
                results.append(Leaving(root, child))
        if answer.dead:
            letter = DeadLetter(
                operator, job.record, answer.dead, answer.traceback, answer.tries
            )
            results.append(Leaving(root, letter))
        places, then = self._ledger.done(place, records, results)
        for place, record in zip(places, records, strict=True):
            self._put(place, record)
        return records, then

    def _turned(self, operators: Iterable[str], now_s: float) -> list[PartInstruction]:
        """Give idle processors of *operators* work, and relays the credit for more."""
        given: list[PartInstruction] = [
            AtOperator(name, instruction)
            for name in operators
            for instruction in self._operators[name].turn(now_s)
            if isinstance(instruction, Give)
        ]
        return [*given, *self._grants()]

    def _grants(self) -> list[GrantRelay]:
        """Return credit for relays: what the operators that read them want, within the bound.

        Each relay has its share, whatever the others have not used.
        """
        left = self._most - self.inside
        granted: list[GrantRelay] = []
        for relay, stream in self._streams.items():
            readers = self._graph.readers.get(stream, ())
            room = min((self._operators[name].room for name in readers), default=1)
            sharing = sum(other == stream for other in self._streams.values())
            share = min(-(-room // sharing), left)
            if (number := share - self._credit[relay]) > 0:
                self._credit[relay] += number
                granted.append(GrantRelay(relay, number))
        return granted


def _child(
    parent: Record, operator: str, number: int, output: OutputRecord, now_s: float
) -> Record:
    """Return an output as the record that it is for the next operators."""
    identity = child_identity(parent.name, operator, number, root=parent.root)
    return Record(
        0,
        identity,
        output.payload,
        stream=output.stream,
        blobs=output.blobs,
        written_s=now_s,
        root=parent.root,
        birth_s=parent.birth_s,
        traced=parent.traced,
        name=identity,
    )

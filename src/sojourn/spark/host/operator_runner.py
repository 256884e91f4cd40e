"""The station of one operator: runs its processors as its desk decides."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, time
from typing import BinaryIO, Protocol

from sojourn.decide.plan import HERE
from sojourn.files.logs import stamp
from sojourn.files.private_files import append_to, make_folder
from sojourn.spark.agent.processes import LocalProcesses
from sojourn.spark.host.counting import Counters, ErrorLog
from sojourn.spark.host.desk.events import Event, ProcessorDone, ProcessorEnded, ProcessorReady
from sojourn.spark.host.desk.instructions import (
    Give,
    KillProcessor,
    NotKept,
    RunnerInstruction,
    StartProcessor,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.wire.counters import OperatorState, OperatorTally, Trace
from sojourn.spark.wire.host_settings import OperatorSettings
from sojourn.spark.wire.processor import Done, FromProcessor, NotReady, Ready, Result, Waits
from sojourn.spark.wire.record import Record


class Decider(Protocol):
    """Decides on the events at the station of an operator."""

    def decide(self, event: Event, /) -> None:
        """Decide on an event, and carry out the decision."""

    def broken(self, reason: str) -> None:
        """End the host: an operator cannot continue."""


class ProcessorGroup(Protocol):
    """The processors of an operator on one node."""

    def start(self, number: int) -> None:
        """Start a processor; the station gets `Ready`, or `died` is called."""

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Send records to a processor, with the *states* of their keys."""

    def let_go(self, number: int) -> None:
        """End an idle processor."""

    def kill(self, number: int, reason: str) -> None:
        """Kill a processor, even a busy one."""

    def memory(self) -> Mapping[int, int]:
        """Return the memory of each processor in bytes."""


class OperatorRunner:
    """Processes and counters of one operator, and its log: a file, or standard error."""

    def __init__(
        self,
        name: str,
        decider: Decider,
        settings: OperatorSettings,
        *,
        log: Path | None = None,
    ) -> None:
        self._name, self._decider = name, decider
        self.desk = OperatorDesk(on_error=settings.on_error)
        self.counters = Counters(name, since_s=monotonic())
        self.measures = True
        """Whether arrivals, times and traces are counted."""
        self._errors = ErrorLog()
        self._log: BinaryIO | None = None
        if log is not None:
            make_folder(log.parent)
            self._log = append_to(log)
        self._settings = settings
        self._processes = LocalProcesses(settings.job, settings.argument, self, log=self._log)
        self._groups: dict[str, ProcessorGroup] = {HERE: self._processes}
        self._node_of: dict[int, str] = {}
        # The records that each processor has, with the time each waited; None in a backfill.
        self._given: dict[int, list[tuple[Record, float | None]]] = {}
        # Killed because a record took too long, and not reported as ended yet.
        self._late: set[int] = set()
        # Why processors wait for an external system.
        self._waiting: dict[int, str] = {}

    async def open(self) -> None:
        """Start the template, unless agents start the processors.

        Raise `EngineError` if it cannot import the job.
        """
        if self._settings.on is None:
            await self._processes.open()

    async def close(self) -> None:
        await self._processes.close()
        if self._log is not None:
            self._log.close()

    def watch(self, now_s: float) -> None:
        """Kill processors that exceed a time limit, and log errors that were repeated."""
        limit_s, set_up_limit_s = self._settings.limit_s, self._settings.set_up_limit_s
        for number in self.desk.processors.late(now_s, limit_s):
            self._late.add(number)
            self._kill(number, f"took longer than {limit_s:g} s for one record")
        for number in self.desk.processors.unready(now_s, set_up_limit_s):
            self._kill(number, f"took longer than {set_up_limit_s:g} s for its set_up")
        for line in self._errors.repeated(now_s):
            self._note(line)

    def tally(self, *, spilled: int = 0, nulls: int = 0) -> OperatorTally:
        """Return the counts since the last call.

        *spilled* records wait on disk, and *nulls* messages without a value were left out.
        """
        desk = self.desk
        used = {node: group.memory() for node, group in self._groups.items()}
        state = OperatorState(
            wanted=desk.processors.wanted,
            running=desk.processors.running,
            waiting=desk.waiting + spilled,
            retried=desk.error_policy.retried,
            dead=desk.error_policy.dead,
            missing=desk.processors.missing,
            spilled=spilled,
            memory={node: sum(sizes.values()) for node, sizes in used.items() if sizes},
            at_work=sum(1 for given in self._given.values() if given),
            waits=min(self._waiting.values(), default=""),
            nulls=nulls,
        )
        memory = {n: size_bytes for sizes in used.values() for n, size_bytes in sizes.items()}
        tally = self.counters.taken(monotonic(), state, memory=memory, nodes=self._node_of)
        if self.counters.untold:
            self._note(f"{self.counters.untold} traces dropped: the driver did not ask in time")
            self.counters.untold = 0
        return tally

    # -- nodes --------------------------------------------------------------------------------

    @property
    def job(self) -> tuple[str, str]:
        """The job that its processors run, and its argument."""
        return self._settings.job, self._settings.argument

    def node_came(self, node: str, group: ProcessorGroup) -> None:
        self._groups[node] = group

    def node_left(self, node: str) -> None:
        """Remove the group of a node, and forget its processors."""
        self._groups.pop(node, None)
        for number in [number for number, on in self._node_of.items() if on == node]:
            self._forget(number)

    # -- messages from processors -----------------------------------------------------------

    def said(self, number: int, message: FromProcessor) -> None:
        match message:
            case Ready():
                self._decider.decide(ProcessorReady(self._name, number))
            case NotReady(error, traceback):
                self._note(self._errors.seen(f"set_up raised {error}", traceback, ""))
            case Waits(reason):
                self._waiting[number] = reason
                self._note(self._errors.seen(f"a record waits: {reason}", "", ""))
                self.desk.processors.waits(number, monotonic())
            case Done(results):
                self._waiting.pop(number, None)
                self._count(number, results)
                self._decider.decide(ProcessorDone(self._name, number, results))

    def lost(self, number: int) -> None:
        """Send no more records to a processor that is gone."""
        self.desk.processors.lost(number)

    def died(self, number: int, reason: str, *, starved: bool = False) -> None:
        """Report the end of a processor, and end the host if no processor can be started.

        *starved* means that it could not be started because memory or the like was lacking.
        """
        late = number in self._late
        given = self._forget(number)
        self._note(
            self._errors.seen(
                f"a processor {reason}", "", given[0][0].position if given else ""
            )
        )
        why = f"its processor {reason}"
        self._decider.decide(ProcessorEnded(self._name, number, why, late, starved))
        if self.desk.processors.hopeless:
            failures = self.desk.processors.failures
            self._decider.broken(
                f"{self._name}: {failures} processors in a row did not start; the last {reason}"
            )

    def template_ended(self) -> None:
        """End the host: without its template no processor can be started."""
        self._decider.broken(
            f"{self._name}: the template process, which starts processors, ended"
        )

    def _count(self, number: int, results: list[Result]) -> None:
        given = self._given.get(number, [])
        self._given[number] = left = given[len(results) :]
        if left and left[0][1] is not None:  # its wait includes the records before it
            record = left[0][0]
            left[0] = record, _waited_s(record, time())
        count = self.counters.processor(number).count
        for (record, waited_s), result in zip(given, results, strict=False):
            if result.error:
                self._note(self._errors.seen(result.error, result.traceback, record.position))
            if self.measures and waited_s is not None and not result.skipped:
                count(service_s=result.took_s, wait_s=waited_s, cpu_s=result.cpu_s)

    # -- instructions -----------------------------------------------------------------------

    def do(self, instruction: RunnerInstruction) -> None:
        match instruction:
            case Give():
                self._give(instruction)
            case NotKept(record, reason):
                told = f"processors that start later will not get this record: {reason}"
                self._note(self._errors.seen(told, "", record.position))
            case StartProcessor(processor, node):
                self._node_of[processor] = node
                if (group := self._groups.get(node)) is not None:  # else it was lost meanwhile
                    group.start(processor)
            case KillProcessor(processor):
                group = self._group_of(processor)
                self._forget(processor)
                if group is not None:
                    group.let_go(processor)

    def _group_of(self, number: int) -> ProcessorGroup | None:
        return self._groups.get(self._node_of.get(number, ""))

    def _kill(self, number: int, reason: str) -> None:
        if (group := self._group_of(number)) is not None:
            group.kill(number, reason)

    def _forget(self, number: int) -> list[tuple[Record, float | None]]:
        """Forget a processor; return its records with the time each has waited."""
        self._node_of.pop(number, None)
        self._late.discard(number)
        self._waiting.pop(number, None)
        return self._given.pop(number, [])

    def _give(self, given: Give) -> None:
        now_s = time()
        before = self._given.get(given.processor, []) if given.ahead else []
        self._given[given.processor] = before + [
            (record, _waited_s(record, now_s) if given.new else None)
            for record in given.records
        ]
        if given.at_once and given.new and self.measures:
            for record in given.records:
                self.counters.transferred(_waited_s(record, now_s))
        if (group := self._group_of(given.processor)) is not None:
            group.give(given.processor, given.records, given.states)

    # -- counters ---------------------------------------------------------------------------

    def arrived(self, record: Record, *, inner: bool) -> None:
        """Count a record that arrived; *inner* if from another operator of the part."""
        if self.measures:
            self.counters.arrived(record, monotonic(), inner=inner)

    def sent(self, record: Record, children: Iterable[Record]) -> None:
        """Count the outputs of a record, and add a traced record to its trace."""
        if not self.measures:
            return
        for child in children:
            self.counters.passed(child.stream, child.size_bytes)
        if not record.traced:
            return
        done_s = time()
        self.counters.traced(
            Trace(
                root=record.root,
                identity=record.name,
                birth_s=record.birth_s,
                done_s=done_s,
                sojourn_s=max(0.0, done_s - record.written_s),
                weight=record.traced,
                children=[(child.stream, child.name) for child in children],
            )
        )

    def _note(self, text: str) -> None:
        """Write to the log of the operator; a failure to write is ignored."""
        if text:
            with suppress(OSError):
                log = sys.stderr.buffer if self._log is None else self._log
                log.write(stamp(text, time()).encode(errors="replace"))
                log.flush()


def _waited_s(record: Record, now_s: float) -> float:
    return max(0.0, now_s - record.written_s) if record.written_s else 0.0

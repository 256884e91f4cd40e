"""The processors of one operator, as a host runs them: what its desk decides is done here."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic, time
from typing import Protocol

from sojourn.app.operator import OnError
from sojourn.host.counting import Counters, HostState, HostTally
from sojourn.host.error_log import ErrorLog
from sojourn.host.instructions import Give, Keep, KillProcessor, NotKept, StartProcessor
from sojourn.host.latest_file import LatestFile
from sojourn.host.log_lines import stamp
from sojourn.host.messages import Answer, Done, FromProcessor, NotReady, Ready, Record, Result
from sojourn.host.operator_desk import OperatorDesk
from sojourn.host.processes import Processes
from sojourn.host.tracing import Trace, child_identity

__all__ = ["Decider", "Station", "StationInstruction", "log"]

StationInstruction = Give | StartProcessor | KillProcessor | Keep | NotKept


class Decider(Protocol):
    """Who decides what is done about what happens at a station."""

    def processor_ready(self, number: int) -> None:
        """Decide what a processor does first."""

    def processor_done(self, number: int, results: list[Result]) -> None:
        """Decide what becomes of what a processor has done."""

    def processor_died(self, number: int, reason: str, *, late: bool) -> None:
        """Decide what becomes of the records of a processor that is gone."""

    def broken(self, reason: str) -> None:
        """End the host: the operator cannot go on."""


class Station:
    """Processes, counters and the log of one operator.

    *job* is `package.module:factory`, called with *argument*. A record may take *limit_s*; a
    set-up, which loads models, *set_up_limit_s*. What is broadcast is kept in *folder*.
    """

    def __init__(  # noqa: PLR0913 - an operator's settings, each by its name
        self,
        name: str,
        decider: Decider,
        *,
        job: str,
        argument: str,
        folder: Path,
        on_error: OnError,
        limit_s: float,
        set_up_limit_s: float,
    ) -> None:
        self._name, self._decider = name, decider
        self._limit_s, self._set_up_limit_s = limit_s, set_up_limit_s
        self._latest_file = LatestFile(folder / "latest")
        self._latest = self._latest_file.read()
        self.desk = OperatorDesk(on_error=on_error, latest=self._latest)
        self.counters = Counters(since_s=monotonic())
        self.measures = True
        self._errors = ErrorLog()
        self._processes = Processes(job, argument, self)
        self._given: dict[int, list[tuple[Record, float | None]]] = {}
        self._late: set[int] = set()

    async def open(self) -> None:
        """Start the template. Raise `EngineError` if it cannot import the job."""
        await self._processes.open()

    async def close(self) -> None:
        """End all processes."""
        await self._processes.close()

    def watch(self, now_s: float) -> None:
        """End what takes too long, and log what came again and again."""
        for number in self.desk.late(now_s, self._limit_s):
            self._late.add(number)
            limit = f"took longer than {self._limit_s:g} s for one record"
            self._processes.kill(number, limit)
        for number in self.desk.unready(now_s, self._set_up_limit_s):
            limit = f"took longer than {self._set_up_limit_s:g} s for its set_up"
            self._processes.kill(number, limit)
        for line in self._errors.repeated(now_s):
            log(line)

    def tally(self, state: HostState) -> HostTally:
        """Return what was counted since the last time."""
        used = self._processes.memory().items()
        memory = {self._called(number): size_bytes for number, size_bytes in used}
        tally = self.counters.taken(monotonic(), state, memory=memory)
        if self.counters.untold:
            log(f"{self.counters.untold} traces dropped: the driver did not ask in time")
            self.counters.untold = 0
        return tally

    # -- what processors say ----------------------------------------------------------------

    def said(self, number: int, message: FromProcessor) -> None:
        """Hear what a processor says."""
        match message:
            case Ready():
                self._decider.processor_ready(number)
            case NotReady(error, traceback):
                log(self._errors.seen(f"set_up raised {error}", traceback, ""))
            case Done(results):
                self._count(number, results)
                self._decider.processor_done(number, results)

    def lost(self, number: int) -> None:
        """Give a processor that is gone nothing more."""
        self.desk.processor_lost(number)

    def died(self, number: int, reason: str) -> None:
        """Let it be decided what to do about a processor that is gone."""
        late = number in self._late
        self._late.discard(number)
        given = self._given.pop(number, [])
        log(self._errors.seen(f"a processor {reason}", "", given[0][0].place if given else ""))
        self._decider.processor_died(number, f"its processor {reason}", late=late)
        if self.desk.hopeless:
            failures = self.desk.failures
            self._decider.broken(
                f"{failures} processors in a row did not start; the last {reason}"
            )

    def template_ended(self) -> None:
        """End: no processor could be started any more."""
        self._decider.broken("the template process, which starts processors, ended")

    def _count(self, number: int, results: list[Result]) -> None:
        given = self._given[number]
        self._given[number] = given[len(results) :]
        for (record, waited_s), result in zip(given, results, strict=False):
            if result.error:
                log(self._errors.seen(result.error, result.traceback, record.place))
            if self.measures and waited_s is not None and not result.skipped:
                self.counters.served(
                    self._called(number),
                    service_s=result.took_s,
                    wait_s=waited_s,
                    cpu_s=result.cpu_s,
                )

    def _called(self, number: int) -> str:
        return f"{self._name}-{number}"

    # -- what was decided -------------------------------------------------------------------

    def do(self, instruction: StationInstruction) -> None:
        """Carry out what the desk decided."""
        match instruction:
            case Give():
                self._give(instruction)
            case Keep(record):
                self._keep(record)
            case NotKept(record, reason):
                told = f"processors that start later will not get this record: {reason}"
                log(self._errors.seen(told, "", record.place))
            case StartProcessor(processor):
                self._processes.start(processor)
            case KillProcessor(processor):
                self._given.pop(processor, None)
                self._processes.let_go(processor)

    def _keep(self, record: Record) -> None:
        try:
            self._latest_file.add(record, self._latest)
        except OSError as error:  # a full disk: as long as this host lives, it has them
            told = f"a restarted host will not have this record: {error}"
            log(self._errors.seen(told, "", record.place))

    def _give(self, given: Give) -> None:
        now_s = time()
        self._given[given.processor] = [
            (record, _waited_s(record, now_s) if given.new else None)
            for record in given.records
        ]
        self._processes.give(given.processor, given.records)

    # -- what is counted --------------------------------------------------------------------

    def arrived(self, records: Iterable[Record], at_once: Iterable[object]) -> None:
        """Count records that came, and of those given to a processor *at_once* their way."""
        if not self.measures:
            return
        now_s = time()
        for record in records:
            self.counters.arrived(record)
        for instruction in at_once:
            if isinstance(instruction, Give) and instruction.new:
                for record in instruction.records:
                    self.counters.transferred(max(0.0, now_s - record.written_s))

    def answered(self, record: Record, answer: Answer) -> None:
        """Count what a record sends on, and follow its tree."""
        if not self.measures:
            return
        for output in answer.outputs:
            self.counters.passed(output.stream, output.size_bytes)
        if not record.traced:
            return
        done_s, name = time(), record.name or record.identity
        children = [
            (output.stream, child_identity(name, self._name, place, root=record.root))
            for place, output in enumerate(answer.outputs)
        ]
        self.counters.traced(
            Trace(
                root=record.root,
                identity=name,
                birth_s=record.birth_s,
                done_s=done_s,
                sojourn_s=max(0.0, done_s - record.written_s),
                weight=record.traced,
                children=children,
            )
        )


def _waited_s(record: Record, now_s: float) -> float:
    return max(0.0, now_s - record.written_s) if record.written_s else 0.0


def log(text: str) -> None:
    """Write to the log of the operator; one that cannot be written harms nobody."""
    if text:
        with suppress(OSError):
            sys.stderr.write(stamp(text, time()))
            sys.stderr.flush()

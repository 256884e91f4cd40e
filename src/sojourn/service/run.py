"""One run of an application, from start to stop, and its output."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from sojourn import engine as capability
from sojourn.decide.plan import Plan
from sojourn.engine import (
    Engine,
    HasKafka,
    KafkaAccess,
    KeepsStateElsewhere,
    LeavesProcesses,
    Progress,
)
from sojourn.errors import ApplicationStarting, DiskFull, EngineError, SojournError
from sojourn.history import HistoryFile, Run
from sojourn.knowledge import Episode
from sojourn.service.control import serving
from sojourn.service.first_plan import first_plan
from sojourn.service.folders import Entry
from sojourn.service.interrupts import Interrupts
from sojourn.service.last_budget import LastBudget
from sojourn.service.name_lock import FAILED, INTERRUPTED, NameLock
from sojourn.service.orders import LoopSettings, MakePolicy, Orders
from sojourn.service.requests import answer
from sojourn.service.state_folder import LastAllocation, StateFolder
from sojourn.service.status import LatestDecisions, Status, status
from sojourn.service.supervisor import Supervisor
from sojourn.topology import Topology

# Turns that wait for space on a full disk; beyond that the oldest are dropped.
_MOST_UNWRITTEN = 2000
# The limit of the default history: more than a day of turns of 1 s, about 300 MB.
_MOST_TURNS = 100_000

Metrics: TypeAlias = Callable[[Callable[[], Status | None]], AbstractContextManager[object]]
"""Serves the status that the given function returns, while it is entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run, checked before anything starts."""

    name: str
    address: str
    """`package.module:name` of the application, or the path of a topology file."""
    topology: Topology
    engine: str
    launch: Callable[[Path, Progress], Engine]
    """Creates the engine, given its state folder and a callback for progress."""
    make: MakePolicy
    """Creates the policy of the loop."""
    loop: LoopSettings
    until_s: float
    """When the run ends, by the engine's clock."""
    state: Path
    start: Mapping[str, int] = field(default_factory=dict)
    """Initial processors; other operators start with those of the last run."""
    fresh: bool = False
    """Whether to delete the state of earlier runs."""
    history: Path | None = None
    """The file for turns; None for the default in the state folder."""
    metrics: Metrics | None = None
    """Serves the status during the run."""
    notes: tuple[str, ...] = ()
    """Texts to print at the start."""

    def __post_init__(self) -> None:
        first_plan(self.topology, self.start, self.loop.most)
        loop = self.loop
        Orders.of(self.make, self.topology, loop.objective, loop.most, loop.placement)


class Output(Protocol):
    """The output of a run.

    Methods are called in this order; `progress`, `notice` and `error` may be called any time.
    """

    def starting(self, name: str, engine: str, begins_with: str) -> None:
        """Report the start of the engine and the initial processors."""

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        """Report that the application runs."""

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:
        """Show each turn, and yield it."""

    def change(self, episode: Episode) -> None:
        """Report a change, a new recommendation, a failure or an order by hand."""

    def end(self, supervisor: Supervisor) -> None:
        """Report the end, with a summary."""

    def progress(self, text: str) -> None:
        """Report the progress of the start or the stop."""

    def notice(self, text: str) -> None:
        """Report something that users should know."""

    def error(self, text: str) -> None:
        """Report a failure."""


def run_application(settings: RunSettings, output: Output) -> int:
    """Run the application until it ends, and return the exit status."""
    name = settings.name
    state = StateFolder(settings.state, name, settings.engine)
    path = state.history if settings.history is None else settings.history
    answers, again = _Answers(output, path), 0
    try:
        with (
            NameLock(
                name, address=settings.address, state=state.path, logs=state.logs
            ) as claim,
            state,
            Interrupts() as interrupts,
            ExitStack() as opened,
        ):
            answers.interrupts = interrupts
            # until the application is ready, requests are answered with its stage
            listening = opened.enter_context(ExitStack())
            listening.enter_context(serving(claim.socket, claim.token, answers))
            # an unavailable port or file must fail before the engine starts
            if settings.metrics is not None:
                opened.enter_context(settings.metrics(answers.status))
            most_turns = _MOST_TURNS if settings.history is None else None
            history = opened.enter_context(HistoryFile(path, most_turns=most_turns))
            engine = settings.launch(state.path, answers.progress)
            if settings.fresh:
                _forget(engine, state)
            last, budget = LastAllocation(state.path), LastBudget(state.path)
            first = first_plan(
                settings.topology, settings.start, settings.loop.most, last.read()
            )
            with engine, interrupts.deaf_afterwards(), listening:
                output.starting(name, engine.name, first.reason)
                engine.start(settings.topology, first)
                last.save(first.allocation)
                supervisor = Supervisor(
                    engine,
                    settings.topology,
                    settings.make,
                    settings.loop,
                    last.save,
                    budget.resumed(settings.loop.objective),
                )
                history.begin(_begun(settings, first, supervisor.orders.said))
                answers.supervisor = supervisor
                watch = _Watch(supervisor, output, history, last, budget, answers.decisions)
                interrupts.breaks = watch.asked_to_end
                interrupts.listen()  # an engine may have installed handlers of its own
                output.ready(
                    Entry.read(claim.folder),
                    supervisor,
                    engine.kafka() if isinstance(engine, HasKafka) else None,
                    (*settings.notes, *filter(None, [budget.note])),
                )
                try:
                    claim.exit_status = watch.until(
                        settings.until_s, interrupts
                    ) or watch.drained(answers.progress)
                    if not claim.exit_status:
                        budget.end()
                except KeyboardInterrupt:
                    budget.end()
                    again = capability.uncommitted(engine)
                    raise
                return claim.exit_status
    except KeyboardInterrupt:
        repeated = f"; {again} records are repeated at the next start" * (again > 0)
        output.error(f"{name} was interrupted{repeated}")
        return INTERRUPTED


def _forget(engine: Engine, state: StateFolder) -> None:
    """Delete the state of earlier runs, once none of their processes uses it."""
    if isinstance(engine, LeavesProcesses):
        engine.await_unused()
    if isinstance(engine, KeepsStateElsewhere):
        engine.forget()
    state.forget()


class _Answers:
    """Answers requests of commands; without a supervisor yet, with the stage of the start."""

    def __init__(self, output: Output, history: Path) -> None:
        self._output, self._history = output, str(history.absolute())
        self._stage = "its engine starts"
        self.decisions = LatestDecisions()
        self.supervisor: Supervisor | None = None
        self.interrupts: Interrupts

    def progress(self, text: str) -> None:
        self._stage = text
        self._output.progress(text)

    def status(self) -> Status | None:
        running = self.supervisor
        return None if running is None else self._status_of(running)

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        if request.get("ask") == "stop":
            if self.supervisor is not None and self.supervisor.mode.name != "ending":
                self._stage = "the loop ends after the current turn"
            self.interrupts.send(now=request.get("now") is True)
            return {"stage": self._stage}
        if self.supervisor is None:
            raise ApplicationStarting(self._stage)
        return answer(self.supervisor, partial(self._status_of, self.supervisor), request)

    def _status_of(self, running: Supervisor) -> Status:
        return status(running, self.decisions.told(), self._history)


class _Watch:
    """Shows the turns of a supervisor, and writes them to the history."""

    def __init__(
        self,
        supervisor: Supervisor,
        output: Output,
        history: HistoryFile,
        last: LastAllocation,
        budget: LastBudget,
        decisions: LatestDecisions,
    ) -> None:
        self._supervisor, self._output, self._decisions = supervisor, output, decisions
        self._last, self._budget = last, budget
        self._unsaved = dict[str, str]()
        self._history: HistoryFile | None = history
        self._unwritten: deque[Episode] = deque()
        self._watching = False
        self._noticed: set[str] = set()
        self._waits_for = capability.health(supervisor.engine).waits_for

    def asked_to_end(self) -> bool:
        """End the loop; return whether to interrupt it now rather than after its turn."""
        again = self._supervisor.mode.name == "ending"
        self._supervisor.end()
        return again or (self._watching and not self._supervisor.acting)

    def until(self, until_s: float, interrupts: Interrupts) -> int:
        """Run the loop until *until_s* or an interrupt; return the exit status."""
        passing = self._output.shown(self._supervisor.turns(until_s), self._supervisor)
        try:
            self._watching = True
            with closing(passing):
                for episode in passing:
                    self._tell_health()
                    self._tell_misses()
                    self._tell_unsaved()
                    if self._decisions.add(episode):
                        self._output.change(episode)
                    self._write(episode)
            self._watching = False
        except KeyboardInterrupt:
            self._watching = False
            if interrupts.times > 1:
                raise
        except EngineError as error:
            self._output.end(self._supervisor)
            name = self._supervisor.topology.name
            self._output.error(f"sojourn: {name} stopped: {error}")
            return FAILED
        return 0

    def drained(self, progress: Progress) -> int:
        """Finish the current batches, and return the exit status."""
        for episode in self._supervisor.untold():
            self._write(episode)
        try:
            self._supervisor.drain(progress)
        except EngineError as error:
            self._output.error(f"sojourn: the current batches were not finished: {error}")
            return FAILED
        self._output.end(self._supervisor)
        return 0

    def _tell_health(self) -> None:
        """Report new notices, once each, and when records begin or cease to be read."""
        health = self._supervisor.health()
        if health.waits_for != self._waits_for:
            self._output.notice(
                f"starting: {health.waits_for}"
                if health.waits_for
                else "running: records are read from all partitions"
            )
            self._waits_for = health.waits_for
        now = set(health.notices)
        for notice in sorted(now - self._noticed):
            self._output.notice(notice)
        self._noticed = now

    def _tell_misses(self) -> None:
        """Report each time slice that missed the target."""
        budget = self._supervisor.knowledge.budget
        if budget is None:
            return
        for judged in budget.latest:
            if not judged.kept:
                self._output.notice(str(judged))

    def _tell_unsaved(self) -> None:
        self._budget.save(self._supervisor.knowledge.budget)
        for lacks, why in (
            ("the current processors are", self._last.failure),
            ("the error budget is", self._budget.failure),
        ):
            if why and self._unsaved.get(lacks) != why:
                said = f"sojourn: {lacks} not saved for the next start"
                self._output.error(f"{said}: {why}")
            self._unsaved[lacks] = why

    def _write(self, episode: Episode) -> None:
        """Write a turn to the history; while the disk is full, turns queue up in memory."""
        if self._history is None:
            return
        waited = bool(self._unwritten)
        self._unwritten.append(episode)
        try:
            while self._unwritten:
                self._history.append(self._unwritten[0])
                self._unwritten.popleft()
        except DiskFull as error:
            if not waited:
                self._output.error(f"sojourn: the history waits for disk space: {error}")
            if len(self._unwritten) > _MOST_UNWRITTEN:
                self._unwritten.popleft()
        except SojournError as error:
            # without its history the application continues
            self._history = None
            self._output.error(f"sojourn: the history ends here: {error}")
        else:
            if waited:
                self._output.error(
                    "sojourn: the history continues: disk space is available again"
                )


def _begun(settings: RunSettings, plan: Plan, policy: str) -> Run:
    loop = settings.loop
    passive = "" if loop.active else ", only recommending"
    return Run(
        topology=settings.topology,
        plan=plan,
        started_at=datetime.now(UTC),
        every_s=loop.every_s,
        policy=f"{policy}{passive}",
        target=loop.objective.target,
        midnight_s=loop.midnight_s,
    )

"""One run of an application, from its claim on the name until everything is stopped."""

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import typer

from sojourn.app.application import App
from sojourn.errors import EngineError, SojournError
from sojourn.history import HistoryFile, Run
from sojourn.knowledge import Episode
from sojourn.report.events import AsJson, ForPeople
from sojourn.report.tally import Tally
from sojourn.report.turns import turns
from sojourn.service.claim import Claim
from sojourn.service.entry import Entry
from sojourn.service.first_plan import FirstAllocation
from sojourn.service.interrupts import Interrupts
from sojourn.service.offered_load import OfferedLoad
from sojourn.service.orders import Beginning, MakePolicy
from sojourn.service.requests import answer
from sojourn.service.server import Server
from sojourn.service.spark import SparkOptions, await_unused, spark_engine
from sojourn.service.state import State
from sojourn.service.status import LatestDecisions, status
from sojourn.service.supervisor import Running
from sojourn.topology import Topology

__all__ = ["INTERRUPTED", "STOPPED", "Start", "run_it"]

STOPPED, INTERRUPTED = 1, 130
"""Exit status where the application stopped by itself, and where it was stopped at once."""

# Of a history that nobody asked for: a day and more of turns of a second, some 300 MB.
_MOST_TURNS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is to be run, all of it read and checked."""

    app: App
    address: str
    topology: Topology
    allocation: FirstAllocation
    make: MakePolicy
    begins: Beginning
    until_s: float
    spark: SparkOptions
    state: Path
    fresh: bool = False
    history: Path | None = None
    prometheus: int | None = None
    offered: OfferedLoad | None = None
    notes: tuple[str, ...] = ()


def run_it(start: Start, says: ForPeople | AsJson) -> int:
    """Run it until it ends or is ended, and return the exit status."""
    name, state = start.app.name, State(start.state, start.app.name)
    history = state.history if start.history is None else start.history
    running: Running | None = None
    decisions, again = LatestDecisions(), 0

    def told() -> dict[str, Any]:
        if running is None:
            return {"name": name}
        return status(running, decisions.told()) | {"history": str(history.absolute())}

    try:
        with (
            Claim(name, address=start.address, state=state.path, logs=state.logs) as claim,
            state,
            Interrupts() as interrupts,
            ExitStack() as opened,
        ):
            # what cannot be had should be refused before Spark has started
            if start.prometheus is not None:
                from sojourn.report.prometheus import Metrics  # noqa: PLC0415 - slow to import

                opened.enter_context(Metrics(start.prometheus, told))
            file = opened.enter_context(_history(start, state))
            engine = spark_engine(
                start.app, start.address, start.spark, state.path, says.progress
            )
            if start.fresh:
                await_unused(state.path, says.progress)
                state.forget()
            with engine, interrupts.deaf_afterwards():
                says.starting(name, start.allocation.said)
                engine.start(start.topology, start.allocation.processors)
                file.begin(_begun(start))
                running = Running(engine, start.topology, start.make, start.begins)
                ran = _Ran(running, says, file, decisions)
                interrupts.breaks = ran.asked_to_end
                interrupts.listen()  # Spark has taken Ctrl-C for itself
                with Server(claim.socket, claim.token, partial(answer, running, told)):
                    says.ready(
                        Entry.read(claim.folder),
                        running,
                        engine.servers,
                        engine.client_properties,
                        start.notes,
                    )
                    for line in _remembered(start.app, start.spark.batch_s):
                        says.progress(line)
                    if start.offered is not None:
                        opened.enter_context(
                            start.offered.sending(start.app, engine.servers, engine.clients)
                        )
                    try:
                        return ran.watched(start.until_s, interrupts) or ran.drained()
                    except KeyboardInterrupt:
                        again = engine.uncommitted()
                        raise
    except KeyboardInterrupt:
        begun = f"; {again} records that were begun come again at the next start" * (again > 0)
        typer.echo(f"{name} was stopped at once{begun}", err=True)
        return INTERRUPTED


class _Ran:
    """A run that is shown, and written down."""

    def __init__(
        self,
        running: Running,
        says: ForPeople | AsJson,
        file: HistoryFile,
        decisions: LatestDecisions,
    ) -> None:
        self._running, self._says, self._decisions = running, says, decisions
        self._file: HistoryFile | None = file
        self._tally = Tally(running.topology, running.orders.target)
        self._watching = False
        self._unkept = ""

    def asked_to_end(self) -> bool:
        """End after this turn, or now if nothing would be cut in two: then it is true."""
        again = self._running.deciding.mode == "ending"
        self._running.end()
        return again or (self._watching and not self._running.acting)

    def watched(self, until_s: float, interrupts: Interrupts) -> int:
        """Turn the loop until somebody wants it to end; return the exit status if it failed."""
        statistic = self._running.orders.target.statistic
        passing = turns(self._running.turns(until_s), statistic)
        try:
            self._watching = True
            with self._says.watch(self._running) as show:
                noticed: set[str] = set()
                for turn in self._tally.counting(passing):
                    self._says.turn(self._running)
                    noticed = self._notice(noticed)
                    show(turn.episode)
                    if self._decisions.add(turn.episode):
                        self._says.change(turn.episode)
                    self._write(turn.episode)
                    self._say_unkept()
            self._watching = False
        except KeyboardInterrupt:
            self._watching = False
            if interrupts.times > 1:
                raise
        except EngineError as error:
            self._says.end(self._tally, self._running)
            name = self._running.topology.name
            typer.echo(f"sojourn: {name} stopped: {error}", err=True)
            return STOPPED
        return 0

    def _notice(self, before: set[str]) -> set[str]:
        """Say what is new of what somebody should know, and return all of it."""
        now = set(self._running.engine.health().notices)
        for notice in sorted(now - before):
            self._says.notice(notice)
        return now

    def drained(self) -> int:
        """Let it end what was begun, and return the exit status."""
        for episode in self._running.untold():
            self._write(episode)
        try:
            self._running.drain(self._says.progress)
        except EngineError as error:
            typer.echo(f"sojourn: not all that was begun is done: {error}", err=True)
            return STOPPED
        self._says.end(self._tally, self._running)
        return 0

    def _write(self, episode: Episode) -> None:
        if self._file is None:
            return
        try:
            self._file.append(episode)
        except SojournError as error:
            # a full disk is no reason to end what runs
            self._file = None
            typer.echo(f"sojourn: the history ends here: {error}", err=True)

    def _say_unkept(self) -> None:
        unkept = self._running.engine.health().unkept
        if unkept and unkept != self._unkept:
            typer.echo(f"sojourn: the next start will not know of this: {unkept}", err=True)
        self._unkept = unkept


def _remembered(app: App, batch_s: float) -> list[str]:
    """Return how far back sinks know what is there: less than a batch would be too little."""
    return [
        f"sink {sink.name} remembers its last {sink.window:,} records, which is a batch of "
        f"{batch_s:g} s at {sink.window / batch_s:,.0f} per second"
        for sink in app.sinks.values()
        if sink.deduplicate
    ]


def _history(start: Start, state: State) -> HistoryFile:
    if start.history is not None:
        return HistoryFile(start.history)
    return HistoryFile(state.history, most_turns=_MOST_TURNS)


def _begun(start: Start) -> Run:
    passive = "" if start.begins.active else ", only recommending"
    return Run(
        topology=start.topology,
        allocation=start.allocation.processors,
        started_at=datetime.now(UTC),
        every_s=start.begins.every_s,
        policy=f"{start.make(start.begins.target, start.begins.most)[1]}{passive}",
        target=start.begins.target,
        midnight_s=start.begins.midnight_s,
    )

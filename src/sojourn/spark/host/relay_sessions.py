"""Sessions of relays, from their hello to their end: each is a task of a Spark batch."""

from collections.abc import Callable
from functools import partial

from sojourn.files.log_lines import log
from sojourn.spark.host.batch.checkpoint_id import CheckpointId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.stage_tasks import StageTasks
from sojourn.spark.host.batch.write_queue import HeldEvents
from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.host.desk.events import (
    DrainAsked,
    Event,
    RecordArrival,
    RelayCame,
    RelayEnded,
    RelayLeft,
    RelaysCounted,
    RowsCame,
)
from sojourn.spark.host.heartbeats import Heartbeats
from sojourn.spark.host.relay_connections import RelayConnections
from sojourn.spark.host.relays import Relays
from sojourn.spark.wire.controller import AskTasks
from sojourn.spark.wire.host_settings import HostSettings
from sojourn.spark.wire.processor import Waits
from sojourn.spark.wire.relay import (
    AllRead,
    Failed,
    FromRelay,
    Grant,
    Heartbeat,
    RelayHello,
    RowsMessage,
)

__all__ = ["RelaySessions"]

# Unlimited credit, for relays of an application that drains: all rows Spark has read are taken.
_ALL = 1 << 30


class RelaySessions:
    """Turns messages of relays into events, and drops relays without heartbeats."""

    def __init__(  # noqa: PLR0913 - most by name
        self,
        settings: HostSettings,
        decide: Callable[[Event], None],
        ledger: Ledger,
        *,
        relays: Relays,
        files: CutFiles,
        held: HeldEvents,
        controller: ControllerConnection,
    ) -> None:
        self._settings, self._decide, self._ledger = settings, decide, ledger
        self._relays, self._files, self._held = relays, files, held
        self._controller = controller
        self._checkpoint = CheckpointId(settings.cuts)
        self._tasks = StageTasks()
        self._heartbeats = Heartbeats[int](settings.relay_timeout_s)
        self._waiting: dict[int, str] = {}
        self._draining = False
        self.connections = RelayConnections(relays, self, self._heartbeats)

    @property
    def waits(self) -> str:
        """Why a relay waits for an external system; empty if none does."""
        return min(self._waiting.values(), default="")

    def relay_said(self, relay: int, message: FromRelay) -> None:
        """Handle a message of a relay."""
        match message:
            case RelayHello():
                self._held.put(partial(self._begin, relay, message))
            case Waits(reason):
                self._waiting[relay] = reason
            case RowsMessage(rows):
                self._waiting.pop(relay, None)
                self._decide(RowsCame(relay, rows))
            case AllRead():
                self._decide(RelayEnded(relay))
            case Heartbeat():
                pass  # `RelayConnections` has noted that it is alive

    def relay_left(self, relay: int) -> None:
        """Report that a relay is gone."""
        self._waiting.pop(relay, None)
        self._decide(RelayLeft(relay))

    def counted(self, stage: int, tasks: int) -> None:
        """Set the number of tasks of a Spark stage, and so the relays of its batch."""
        if (arrival := self._tasks.of(stage)) is not None:
            self._decide(RelaysCounted(arrival.attempt, arrival.batch, tasks))

    def drain(self) -> None:
        """Drain the part: grant unlimited credit, to relays that connect later too."""
        self._draining = True
        self._relays.say_to_all(Grant(_ALL))
        self._decide(DrainAsked())

    def drop_silent(self, now_s: float) -> None:
        """Drop relays whose heartbeats have timed out."""
        timeout_s = self._settings.relay_timeout_s
        for relay in self._heartbeats.silent(now_s):
            batch = self._ledger.batch
            log(f"no heartbeat from a task of batch {batch} for {timeout_s:g} s: it runs again")
            self._heartbeats.end(relay)
            self._relays.drop(relay, f"its host had no heartbeat for {timeout_s:g} s")
            self.relay_left(relay)

    def fail_incomplete(self) -> None:
        """Fail the batch if some of its tasks have been missing for too long."""
        missing, not_begun = self._ledger.missing, self._ledger.not_begun
        if reason := self._tasks.watch(self._heartbeats.listened_s, missing, not_begun):
            self._relays.say_to_all(Failed(reason))

    def _begin(self, relay: int, hello: RelayHello) -> None:
        """Admit a relay, or refuse it. Raise `DiskFull` if files need room before that."""
        if reason := self._checkpoint.refusal(hello.query):
            self._relays.say(relay, Failed(reason))
            return
        if self._tasks.is_outdated(hello.stage):
            self._relays.say(relay, Failed("a later run or batch of its query has begun"))
            return
        attempt = self._files.attempt(hello.run)
        if self._settings.stateful:
            self._files.prepare()
        arrival = RecordArrival(attempt=attempt, batch=hello.batch, task=hello.partition)
        self._decide(RelayCame(relay, arrival))
        # If the disk is full that decision is held, and this must follow it directly.
        self._held.put_next(partial(self._greeted, relay, arrival, hello.stage))

    def _greeted(self, relay: int, arrival: RecordArrival, stage: int) -> None:
        if not self._ledger.knows(relay):
            return
        self._heartbeats.begin(relay)
        if self._tasks.begins(arrival, stage):
            self._controller.tell(AskTasks(self._settings.name, stage))
        if self._draining:
            self._relays.say(relay, Grant(_ALL))

"""Sessions of relays, on this machine and on others: each is a task of a Spark batch."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from sojourn.files.logs import log
from sojourn.spark.host.batch.batch_tasks import StageTasks
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.query_runs import CheckpointId
from sojourn.spark.host.batch.write_queue import HeldEvents
from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.host.desk.events import (
    DrainAsked,
    Event,
    RelayCame,
    RelayEnded,
    RelayLeft,
    RelaysCounted,
    RowsCame,
)
from sojourn.spark.host.listener import Heartbeats, received
from sojourn.spark.host.relays import FarWriter, Relays
from sojourn.spark.wire.controller import AskTasks
from sojourn.spark.wire.event_loop import FrameConnection, report
from sojourn.spark.wire.frames import Frames
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
    with_rows_together,
)

# Unlimited credit, for relays of an application that drains: all rows Spark has read are taken.
_ALL = 1 << 30
_decode = msgspec.msgpack.Decoder(FromRelay).decode


class RelaySessions:
    """Turns messages of relays into events, and drops relays without heartbeats.

    Any data from a relay counts as a heartbeat.
    """

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

    @property
    def waits(self) -> str:
        """Why a relay waits for an external system; empty if none does."""
        return min(self._waiting.values(), default="")

    # -- connections --------------------------------------------------------------------------

    def near(self) -> FrameConnection:
        """Return the connection of a new relay on this machine."""
        connection = FrameConnection(lambda bodies: self._heard(relay, bodies))
        relay = self._relays.came(connection)
        connection.closed.add_done_callback(lambda _: self._left(relay))
        return connection

    async def far(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a relay on another machine until it disconnects."""
        relay, frames = self._relays.came(FarWriter(writer)), Frames()
        try:
            while some := await received(reader):
                self._heartbeats.heard(relay)  # before a large message is complete
                self._heard(relay, frames.fed(some))
        except asyncio.CancelledError:
            pass
        finally:  # else the host would wait for it forever
            self._left(relay)

    def _heard(self, relay: int, bodies: Iterable[bytes]) -> None:
        self._heartbeats.heard(relay)
        try:
            messages = list(with_rows_together(map(_decode, bodies)))
        except msgspec.MsgspecError:
            self._relays.left(relay)  # the peer does not speak the protocol
            return
        try:
            for message in messages:
                self.relay_said(relay, message)
        except Exception as error:  # noqa: BLE001 - reported before the relay's end is decided
            report(error)
            self._relays.left(relay)

    def _left(self, relay: int) -> None:
        self._heartbeats.end(relay)
        self._relays.left(relay)
        self.relay_left(relay)

    # -- messages -----------------------------------------------------------------------------

    def relay_said(self, relay: int, message: FromRelay) -> None:
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
                pass  # any data has shown that it is alive

    def relay_left(self, relay: int) -> None:
        self._waiting.pop(relay, None)
        self._decide(RelayLeft(relay))

    def counted(self, stage: int, tasks: int) -> None:
        """Set the number of tasks of a Spark stage, and so the relays of its batch."""
        if (cut := self._tasks.of(stage)) is not None:
            self._decide(RelaysCounted(cut, tasks))

    def drain(self) -> None:
        """Drain the part: grant unlimited credit, to relays that connect later too."""
        self._relays.say_to_all(Grant(_ALL))
        self._decide(DrainAsked())

    def drop_silent(self, now_s: float) -> None:
        timeout_s = self._settings.relay_timeout_s
        for relay in self._heartbeats.silent(now_s):
            batch = self._ledger.batch
            log(f"no heartbeat from a task of batch {batch} for {timeout_s:g} s: it runs again")
            self._heartbeats.end(relay)
            self._relays.drop(relay, f"its host had no heartbeat for {timeout_s:g} s")
            self.relay_left(relay)

    def fail_incomplete(self) -> None:
        """Fail the batch if some of its tasks have been missing for too long."""
        relays = self._ledger.relays
        if reason := self._tasks.watch(
            self._heartbeats.listened_s, relays.missing, relays.not_begun
        ):
            self._relays.say_to_all(Failed(reason))

    def _begin(self, relay: int, hello: RelayHello) -> None:
        """Admit a relay, or refuse it. Raise `DiskFull` if files need room before that."""
        if reason := self._checkpoint.refusal(hello.query):
            self._relays.say(relay, Failed(reason))
            return
        if self._tasks.is_outdated(hello.stage):
            self._relays.say(relay, Failed("a later run or batch of its query has begun"))
            return
        cut = CutId(hello.batch, self._files.attempts.number(hello.run))
        if self._settings.stateful:
            self._files.state.prepare()
        self._decide(RelayCame(relay, cut, hello.partition))
        # If the disk is full that decision is held, and this must follow it directly.
        self._held.put_next(partial(self._greeted, relay, cut, hello.stage))

    def _greeted(self, relay: int, cut: CutId, stage: int) -> None:
        if relay not in self._ledger.relays:
            return
        self._heartbeats.begin(relay)
        if self._tasks.begins(cut, stage):
            self._controller.tell(AskTasks(self._settings.name, stage))
        if self._ledger.draining:
            self._relays.say(relay, Grant(_ALL))

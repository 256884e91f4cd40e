"""Carries out the instructions of a part's desk: at processors, relays, disk and driver."""

import gc
from collections.abc import Callable, Iterable, Mapping

from sojourn.spark.host.batch.cut import Cut
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.write_queue import WriteQueue
from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.host.desk.events import CutSaved, Event
from sojourn.spark.host.desk.instructions import (
    AtOperator,
    BatchInstruction,
    CountArrival,
    CountOutputs,
    FinishRelay,
    GrantRelay,
    HandOver,
    Instruction,
    RefuseRelay,
    SaveCut,
    StopPart,
)
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.processors import Processors
from sojourn.spark.host.operator_runner import OperatorRunner
from sojourn.spark.host.relays import Relays
from sojourn.spark.host.state.keyed_state import Delta, MergeState
from sojourn.spark.wire.controller import Reached, Stopped
from sojourn.spark.wire.host_settings import HostSettings
from sojourn.spark.wire.relay import Failed, Finished

# A full collection of garbage with fewer open records than this does not block for long.
_FEW = 10_000


class Execution:
    """Hands instructions to stations, relays and files; *decide* gets events that follow."""

    def __init__(  # noqa: PLR0913 - the collaborators of a host
        self,
        settings: HostSettings,
        decide: Callable[[Event], None],
        desk: PartDesk,
        ledger: Ledger,
        *,
        stations: Mapping[str, OperatorRunner],
        relays: Relays,
        files: CutFiles,
        writes: WriteQueue,
        controller: ControllerConnection,
    ) -> None:
        self._settings, self._decide = settings, decide
        self._desk, self._ledger = desk, ledger
        self._stations, self._relays = stations, relays
        self._files, self._writes, self._controller = files, writes, controller
        # Arrivals from Kafka are counted by offsets instead.
        self._inner = frozenset(settings.inner) - frozenset(settings.projected)
        self._changes = dict.fromkeys(stations, 0)
        self._reached: dict[str, tuple[Mapping[str, int], str]] = {}

    def do(self, instructions: Iterable[Instruction]) -> None:
        """Carry out instructions, in order."""
        for instruction in instructions:
            match instruction:
                case AtOperator(operator, then):
                    self._stations[operator].do(then)
                case CountArrival(operator, record):
                    inner = record.stream in self._inner
                    self._stations[operator].arrived(record, inner=inner)
                case CountOutputs(operator, record, children):
                    self._stations[operator].sent(record, children)
                case HandOver():
                    self._relays.hand_over(instruction)
                case GrantRelay(relay, number):
                    self._relays.grant(relay, number)
                case StopPart():
                    self._stop(instruction)
                case _:
                    self._do_batch(instruction)
        self._relays.send()
        # This runs after every event, so it compares a version before the contents.
        for name, station in self._stations.items():
            processors = station.desk.processors
            if processors.changes != self._changes[name]:
                self._changes[name] = processors.changes
                self._tell_reached(name, processors)

    def _tell_reached(self, name: str, processors: Processors) -> None:
        reached = processors.by_node, processors.missing
        if reached != self._reached.get(name, ({}, "")):
            self._reached[name] = reached
            self._controller.tell(
                Reached(self._settings.name, name, processors.running, reached[1], reached[0])
            )

    def _do_batch(self, instruction: BatchInstruction) -> None:
        match instruction:
            case SaveCut(cut, changed):
                self._save(cut, changed)
            case MergeState():
                self._merge(instruction)
            case FinishRelay(relay):
                self._relays.say(relay, Finished())
            case RefuseRelay(relay, reason):
                self._relays.say(relay, Failed(reason))

    def _stop(self, stop: StopPart) -> None:
        operator, position = stop.record.operator, stop.record.record.position
        told = why_it_stops(stop)
        self._controller.tell(Stopped(self._settings.name, operator, position, told))
        self._relays.say_to_all(Failed(f"{operator}: record {position}: {told}"))

    def _save(self, cut: Cut, changed: Delta) -> None:
        def write() -> None:
            self._files.save(cut, changed)
            # The batch before this one is committed, because this one has begun.
            self._files.drop_before(cut.id.batch - 1 - self._settings.kept_batches)

        def then() -> None:
            self._decide(CutSaved(cut.id))
            collect_if_few(self._desk.inside)

        self._writes.put(f"the open records of {self._settings.name}", write, then)

    def _merge(self, merge: MergeState) -> None:
        self._writes.put(
            f"the state of {self._settings.name}",
            lambda: self._files.state.merge(merge),
            lambda: self._ledger.state.merged(merge.upto),
        )


def collect_if_few(records: int) -> None:
    """Run a full collection of garbage if few *records* are open, so that it is short."""
    if records < _FEW:
        gc.collect()


def why_it_stops(stop: StopPart) -> str:
    """Return the reason of a stop, its traceback, and the way out."""
    way_out = (
        f"correct {stop.record.operator} and start the application again: it continues with "
        'this record; or set on_error="dead_letter" to put such records aside'
    )
    return "\n".join(part for part in (stop.reason, stop.traceback, way_out) if part)

"""The ledger of a part: offsets taken, open records and results, across Spark's batches.

Spark runs a batch with one relay for each task. When all relays have handed over all rows that
Spark read, the ledger makes a cut of the open records. No relay ends before that cut is on
disk, so Spark commits a batch only with its cut, and a batch need not wait for its records.

A batch that fails is run again by a new attempt, with other end offsets. Roots taken since the
last committed cut are not taken again. Results handed over since then may not have been
written, so they are handed over again, even if Spark does not read their roots again. A ledger
whose memory does not derive from the committed cut is restored from that cut and the log.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import msgspec

from sojourn.errors import EngineError
from sojourn.spark.host.batch.batch_relays import LOST, BatchRelays
from sojourn.spark.host.batch.cut import Cut, CutId, Leaving, OpenRecord, Segment, floors
from sojourn.spark.host.batch.leaving_results import LeavingResults, as_entry, as_leaving
from sojourn.spark.host.batch.log_entries import (
    Changed,
    Committed,
    Did,
    Entered,
    Entry,
    Kept,
    Left,
    LogMark,
    Started,
    Took,
)
from sojourn.spark.host.batch.spill import SegmentStore, Spill
from sojourn.spark.host.desk.events import RecordArrival
from sojourn.spark.host.desk.instructions import (
    BatchInstruction,
    FinishRelay,
    HandOver,
    RefuseRelay,
    Restore,
    SaveCut,
)
from sojourn.spark.host.state.keyed_state import KeyedState, StateStore
from sojourn.spark.host.state.part_clock import PartClock
from sojourn.spark.host.state.reminders import Reminders
from sojourn.spark.wire.record import Partition, Record, Root
from sojourn.spark.wire.repetitions import ID_WINDOW, Memory, Provenance, Repetitions

__all__ = ["CutStore", "Ledger"]


# Results handed over since the last commit that are kept in memory; beyond that, in the log.
_MOST_HANDED, _MOST_HANDED_BYTES = 50_000, 64 << 20


class CutStore(SegmentStore, StateStore, Protocol):
    """Cuts on disk, with their segments and states."""

    def last(self, batch: int) -> CutId:
        """Return the cut of a committed batch, made by the last attempt at it."""
        ...

    def newest_attempt(self) -> int:
        """Return the last attempt that has made a cut; -1 if none has."""
        ...

    def load(self, cut: CutId) -> Cut:
        """Return a cut; the one before the first batch is empty."""
        ...

    @property
    def log_is_own(self) -> bool:
        """Whether no other host has continued the log."""
        ...

    def logged(self, base: CutId) -> Iterable[Iterable[Entry]]:
        """Return the entries logged since a cut, in groups."""
        ...

    def recover(self, base: CutId) -> Iterable[Iterable[Entry]]:
        """Return the entries logged since a cut, in groups, and continue the log from there."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """A cut that the memory of the ledger derives from."""

    floors: dict[Partition, int]
    """Offsets below which all roots were done and their results had left."""
    spilled: tuple[Segment, ...]


class Ledger:
    """Roots taken, open records, and results that leave, between the batches of Spark.

    *reminded* has the topic name of reminders by operator, which are due by *clock*. Ids that
    producers gave are compared with the last *id_window* of their partition. The last *kept*
    batches before the committed one stay on disk with all that a start needs: Spark does not
    sync its files, so after a power failure its last commits may be lost.
    """

    def __init__(  # noqa: PLR0913 - most by name
        self,
        store: CutStore,
        spill: Spill | None = None,
        *,
        most_handed: int = _MOST_HANDED,
        most_handed_bytes: int = _MOST_HANDED_BYTES,
        reminded: Mapping[str, str] | None = None,
        id_window: int = ID_WINDOW,
        clock: PartClock | None = None,
        kept: int = 0,
    ) -> None:
        self._store, self._spill = store, Spill(store) if spill is None else spill
        self._state = KeyedState(store)
        self.clock = clock or PartClock()
        self.reminders = Reminders(self._state, reminded or {}, self.clock)
        self._attempt, self._batch = -1, -1
        self._memory: dict[CutId, _Known] = {}  # the cuts that this memory derives from
        self._kept, self._committed = kept, deque[tuple[CutId, tuple[Segment, ...]]]()
        self._relays = BatchRelays()
        self._cutting: Cut | None = None
        self._draining = False
        self._taken: dict[Partition, int] = {}
        self._number = 0
        self._open: dict[int, OpenRecord] = {}
        self._leaving = LeavingResults(most_handed, most_handed_bytes)
        self._floors: dict[Partition, int] = {}
        self._unlogged: list[Entry] = []
        self._unlogged_start = False
        self._known: dict[Partition, Repetitions] = {}
        self._id_window = id_window
        self.repeated = 0
        """Roots that were not taken, because Spark or their producer repeated them."""
        self.clean: int | None = None
        """The first batch that ended with nothing open, if nothing has entered since."""

    @property
    def taken(self) -> dict[Partition, int]:
        """The next offset to take, by partition."""
        return self._taken

    @property
    def batch(self) -> int:
        """The current or last batch; -1 before the first."""
        return self._batch

    @property
    def attempt(self) -> int:
        """The attempt at that batch."""
        return self._attempt

    @property
    def relays(self) -> int:
        """Number of relays of the batch."""
        return len(self._relays)

    @property
    def missing(self) -> str:
        """What relays that have ended wait for before the cut; empty if for nothing."""
        return "" if self._cutting is not None else self._relays.missing

    @property
    def not_begun(self) -> str:
        """How many tasks of the batch have begun, as text; empty if all have."""
        return "" if self._cutting is not None else self._relays.not_begun

    @property
    def open(self) -> dict[int, OpenRecord]:
        """Records in memory that are not done, by number, in order of arrival."""
        return self._open

    @property
    def spill(self) -> Spill:
        """Records on disk that are not done."""
        return self._spill

    @property
    def state(self) -> KeyedState:
        """State of all keys."""
        return self._state

    @property
    def draining(self) -> bool:
        """Whether the part must end with nothing open."""
        return self._draining

    @property
    def _empty(self) -> bool:
        return not self._open and not len(self._spill)

    # -- relays ---------------------------------------------------------------------------

    def knows(self, relay: int) -> bool:
        """Return whether a relay belongs to the current batch."""
        return relay in self._relays

    def relay_came(self, relay: int, arrival: RecordArrival) -> list[BatchInstruction]:
        """Admit a relay, or refuse it; the first of a batch ends the batch before.

        A second relay for the same task means that Spark considers the first one lost, with
        the results that it has not written yet. So the whole batch must run again.
        """
        now = arrival.attempt, arrival.batch
        if now != (self._attempt, self._batch):
            newest = max(self._attempt, self._store.newest_attempt())
            if arrival.attempt < newest or arrival.batch < self._batch:
                return [RefuseRelay(relay, f"a later attempt or batch than {now} has begun")]
            begun = self._begun(arrival)
        elif self._relays.lost or self._cutting is not None:
            return [RefuseRelay(relay, LOST)]
        elif self._relays.has(arrival.task):
            lost = self._relays.lose()
            return [RefuseRelay(each, LOST) for each in (*lost, relay)]
        else:
            begun = []
        self._relays.came(relay, arrival.task)
        return [*begun, *self._handed_over()]

    def relays_are(self, attempt: int, batch: int, number: int) -> list[BatchInstruction]:
        """Set the number of relays of a batch."""
        if (attempt, batch) != (self._attempt, self._batch):
            return []
        self._relays.expect(number)
        return self._cut()

    def _begun(self, arrival: RecordArrival) -> list[BatchInstruction]:
        """Begin a batch: the one before it is committed, or this is another attempt at it."""
        over = [RefuseRelay(relay, "its batch is over") for relay in self._relays]
        self._relays, self._cutting = BatchRelays(), None
        base = self._store.last(arrival.batch - 1)
        restored: list[BatchInstruction] = []
        if base not in self._memory or not self._store.log_is_own:
            # This host is new, another has continued its log, or Spark went back further.
            restored = [Restore(self._recovered(base))]
            self._committed.clear()
        elif arrival.batch == self._batch:
            # A new attempt: results handed over since *base* may not have been written.
            self._leaving.again(lambda: self._store.logged(base))
        self._leaving.committed()
        known = self._memory[base]
        self._memory, self._floors = {base: known}, known.floors
        self._drop_before(base, known.spilled)
        self._attempt, self._batch = arrival.attempt, arrival.batch
        return [*over, *restored, *self._state.committed(base.batch - self._kept)]

    def _drop_before(self, base: CutId, spilled: tuple[Segment, ...]) -> None:
        """Remove files that no start needs, now that the cut *base* is committed.

        The oldest cut that a start may resume from is known only once enough batches were
        committed by this ledger.
        """
        committed, oldest = self._committed, base.batch - self._kept
        if not committed or committed[-1][0] != base:
            committed.append((base, spilled))
        while len(committed) > 1 and committed[1][0].batch <= oldest:
            committed.popleft()
        cut, segments = committed[0]
        if cut.batch <= oldest:
            self._spill.committed(cut.batch, segments)
            self._unlogged.append(Committed(cut))

    def _recovered(self, base: CutId) -> Cut:
        """Restore a cut, replay the log since, and return the cut with the latest broadcasts.

        Results that were logged leave again.
        """
        cut = self._store.load(base)
        self._restore(cut)
        latest = {name: list(records) for name, records in cut.latest.items()}
        logged = (entry for group in self._store.recover(base) for entry in group)
        if (first := next(logged, None)) is not None:
            for segment in cut.spilled:  # the log may close records that were spilled
                self.fetched(segment.operator)
            for entry in chain([first], logged):
                self._replay(entry, latest)
        self._leaving.again(lambda: self._store.logged(base))
        self._unlogged_start = cut.clock is None or self.clock.in_doubt
        return msgspec.structs.replace(
            cut, latest={name: tuple(records) for name, records in latest.items()}
        )

    def _replay(self, entry: Entry, latest: dict[str, list[Record]]) -> None:
        match entry:
            case Took(root, provenance):
                self._is_new(root, provenance)  # to remember its id
                self._taken[root.partition] = root.offset + 1
                self.clean = None
            case Entered(record):
                self.clean = None
                self.reminders.entered(record.root)
                self._number = max(self._number, record.number)
                self._open[record.number] = record
            case Did(number):
                if self._open.pop(number, None) is None:
                    raise EngineError(
                        f"its log closes record {number}, which was not open; restore its "
                        "folder, or start without this state (--fresh)"
                    )
            case Left():
                self._leaving.handed([as_leaving(entry)])
            case Changed(operator, key, state):
                self._state.change(operator, key, state)
            case Started(clock):
                self.clock.restore(clock)
            case Kept(operator, record):
                latest.setdefault(operator, []).append(record)

    def _restore(self, cut: Cut) -> None:
        self._taken = dict(cut.taken)
        self._open = {record.number: record for record in cut.open}
        self._number = max(self._number, cut.numbered)
        self._spill.restore(cut.spilled)
        self._state.restore(cut.changed, batch=cut.id.batch)
        self.clock.restore(cut.clock)
        self.reminders.restore(cut.reminded)
        self._known = {
            partition: Repetitions(self._id_window, memory)
            for partition, memory in cut.known.items()
        }
        self._leaving.clear()
        self._memory = {cut.id: _Known(floors(cut), cut.spilled)}
        self.clean = cut.id.batch if self._empty else None

    def takes(self, relay: int, root: Root, provenance: Provenance | None = None) -> bool:
        """Take a root; return False if it is a repetition by Spark or by its producer.

        Rows of a relay that is not of the current batch are ignored.
        """
        if relay not in self._relays:
            return False
        self._relays.reads(relay, root.partition)
        if root.offset < self._taken.get(root.partition, 0):
            self.repeated += 1
            return False
        self._taken[root.partition] = root.offset + 1
        self._unlogged.append(Took(root, provenance))
        self.clean = None
        return self._is_new(root, provenance)

    def _is_new(self, root: Root, provenance: Provenance | None) -> bool:
        """Return whether a record is not a repetition by its producer."""
        if provenance is None:
            return True
        known = self._known.get(root.partition)
        if known is None:
            known = Repetitions(self._id_window, Memory())
            self._known[root.partition] = known
        if known.is_new(provenance):
            return True
        self.repeated += 1
        return False

    def relay_ended(self, relay: int) -> list[BatchInstruction]:
        """Mark a relay as ended: it has handed over all rows. Make a cut if it is the last."""
        self._relays.ended(relay)
        return self._cut()

    def relay_left(self, relay: int) -> list[BatchInstruction]:
        """Remove a relay: it is finished, or the batch must run again.

        If a task is lost with its executor, Spark would repeat that task within the batch, and
        results that the first had not written would be lost. So the batch fails as a whole.
        """
        return [RefuseRelay(other, LOST) for other in self._relays.left(relay)]

    def drain(self) -> list[BatchInstruction]:
        """Drain the part: from now on a cut waits until nothing is open."""
        self._draining = True
        return self._cut()

    # -- cuts -----------------------------------------------------------------------------

    def _cut(self) -> list[BatchInstruction]:
        if self._cutting is not None or not self._relays.all_ended:
            return []
        if self._leaving.in_log:  # a commit would drop results not replayed yet
            return []
        if self._draining and not self._empty:
            return []
        # Results that waited for a replay from the log precede this cut: they leave with its
        # batch.
        handed = self._handed()
        now = CutId(self._batch, self._attempt)
        cuts, changed = self._state.cut(now)
        self._unlogged.append(LogMark(now))
        self._cutting = Cut(
            id=now,
            taken=dict(self._taken),
            open=tuple(self._open.values()),
            spilled=self._spill.segments(self._batch),
            changed=cuts,
            known={place: known.memory.copied() for place, known in self._known.items()},
            reminded=self.reminders.numbers(),
            numbered=self._number,
            clock=self.clock.reading(),
        )
        if not self._empty:
            self.clean = None
        elif self.clean is None:
            self.clean = self._batch  # unchanged by later batches without a record
        return [*handed, SaveCut(self._cutting, changed)]

    def saved(self, cut: CutId) -> list[BatchInstruction]:
        """Let relays finish: their cut is on disk."""
        if self._cutting is None or cut != self._cutting.id:
            return []  # another attempt has begun
        self._memory[cut] = _Known(floors(self._cutting), self._cutting.spilled)
        self._relays.finished = True
        return [FinishRelay(relay) for relay in self._relays]

    # -- records --------------------------------------------------------------------------

    def unlogged(self) -> list[Entry]:
        """Return the changes since the last call, which must be logged before any effect."""
        if self._unlogged_start and not self.clock.in_doubt:
            self._unlogged_start = False
            self._unlogged.append(Started(self.clock.reading()))
        entries, self._unlogged = self._unlogged, []
        return entries

    def entered(self, record: OpenRecord) -> OpenRecord:
        """Open a record in memory, and return it with its number."""
        entered = self._numbered(record)
        self._open[entered.number] = entered
        return entered

    def _numbered(self, record: OpenRecord) -> OpenRecord:
        """Give a record its number, and log that it is open."""
        self._number += 1
        numbered = OpenRecord(record.root, record.operator, record.record, self._number)
        self._unlogged.append(Entered(numbered))
        self.clean = None
        return numbered

    def leaves(self, leaving: Leaving) -> list[BatchInstruction]:
        """Hand over a result of a root that skips all operators."""
        self._left([leaving])
        return self._handed()

    def spilled(self, record: OpenRecord) -> None:
        """Open a record on disk."""
        self._spill.put(self._batch, self._numbered(record))

    def put_back(self, number: int) -> None:
        """Move a restored record from memory to disk."""
        self._spill.put(self._batch, self._open.pop(number))

    def fetched(self, operator: str) -> Sequence[OpenRecord]:
        """Move the oldest spilled records of an operator into memory, and return them."""
        fetched = self._spill.take(operator)
        self._open.update((record.number, record) for record in fetched)
        return fetched

    def changed(self, operator: str, key: str, state: bytes) -> None:
        """Set the state of a key; an empty one removes it."""
        self._unlogged.append(Changed(operator, key, state))
        self._state.change(operator, key, state)

    def kept(self, operator: str, record: Record) -> None:
        """Log that an operator keeps a broadcast record for processors that start later."""
        self._unlogged.append(Kept(operator, record))

    def done(self, number: int, results: Iterable[Leaving]) -> list[BatchInstruction]:
        """Close a record and hand over its results; its outputs must be open already."""
        del self._open[number]
        self._unlogged.append(Did(number))
        self._left(results)
        handed = self._handed()
        return [*handed, *self._cut()] if self._draining else handed

    @property
    def leaves_again(self) -> bool:
        """Whether results are being replayed from the log, as fast as relays take them."""
        return self._leaving.in_log

    def hand_on(self) -> list[BatchInstruction]:
        """Hand over the next portion of a replay from the log, and resume after the last."""
        return [*self._handed_over(), *self._handed(), *self._cut()]

    def _left(self, results: Iterable[Leaving]) -> None:
        for leaving in results:
            self._leaving.add(leaving)
            self._unlogged.append(as_entry(leaving))

    def _handed(self) -> list[BatchInstruction]:
        """Hand results over to relays, unless a replay from the log must leave first."""
        return [] if self._leaving.in_log else self._handed_over()

    def _handed_over(self) -> list[BatchInstruction]:
        # Results after a cut belong to the next batch, so they wait for its relays.
        if self._cutting is not None or not self._leaving or not self._relays:
            return []
        return [
            HandOver(
                self._relays.of(leaving.root.partition),
                leaving,
                self._floors.get(leaving.root.partition, 0),
            )
            for leaving in self._leaving.hand_over()
        ]

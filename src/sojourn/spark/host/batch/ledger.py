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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec

from sojourn.errors import EngineError
from sojourn.spark.host.batch.batch_tasks import LOST, BatchRelays
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord, Segment, floors
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.host_log import (
    Changed,
    Committed,
    Did,
    Entered,
    Entry,
    Kept,
    Leaving,
    LogMark,
    Started,
    Took,
)
from sojourn.spark.host.batch.leaving_results import LeavingResults
from sojourn.spark.host.batch.spill import Spill
from sojourn.spark.host.desk.instructions import (
    BatchInstruction,
    FinishRelay,
    HandOver,
    RefuseRelay,
    Restore,
    SaveCut,
)
from sojourn.spark.host.state.keyed_state import KeyedState
from sojourn.spark.host.state.part_clock import PartClock
from sojourn.spark.host.state.reminders import Reminders
from sojourn.spark.wire.record import Partition, Record, Root
from sojourn.spark.wire.repetitions import ID_WINDOW, Memory, Provenance, Repetitions

# Results handed over since the last commit that are kept in memory; beyond that, in the log.
_MOST_HANDED, _MOST_HANDED_BYTES = 50_000, 64 << 20


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
        store: CutFiles,
        spill: Spill | None = None,
        *,
        most_handed: int = _MOST_HANDED,
        most_handed_bytes: int = _MOST_HANDED_BYTES,
        reminded: Mapping[str, str] | None = None,
        id_window: int = ID_WINDOW,
        clock: PartClock | None = None,
        kept: int = 0,
    ) -> None:
        self._store = store
        self.spill = Spill(store.segments) if spill is None else spill
        """Records on disk that are not done."""
        self.state = KeyedState(store.state)
        self.clock = clock or PartClock()
        self.reminders = Reminders(self.state, reminded or {}, self.clock)
        self.batch = -1
        """The current or last batch; -1 before the first."""
        self.attempt = -1
        """The attempt at that batch."""
        self.relays = BatchRelays()
        self._memory: dict[CutId, _Known] = {}  # the cuts that this memory derives from
        self._kept, self._committed = kept, deque[tuple[CutId, tuple[Segment, ...]]]()
        self._cutting: Cut | None = None
        self.draining = False
        """Whether the part must end with nothing open."""
        self.taken: dict[Partition, int] = {}
        """The next offset to take, by partition."""
        self._number = 0
        self.open: dict[int, OpenRecord] = {}
        """Records in memory that are not done, by number, in order of arrival."""
        self.leaving = LeavingResults(most_handed, most_handed_bytes)
        """Results that leave, and those that a replay from the log hands over again."""
        self._floors: dict[Partition, int] = {}
        self._unlogged: list[Entry] = []
        self._unlogged_start = False
        self._known: dict[Partition, Repetitions] = {}
        self._id_window = id_window
        self.repeated = 0
        """Roots that were not taken, because Spark or their producer repeated them."""
        self.clean: int | None = None
        """The first batch that ended with nothing open, if nothing has entered since."""
        self.latest: Callable[[], dict[str, tuple[Record, ...]]] = dict
        """Returns the broadcast records that a cut keeps, by operator; the desk sets it."""

    @property
    def _empty(self) -> bool:
        return not self.open and not len(self.spill)

    # -- relays ---------------------------------------------------------------------------

    def relay_came(self, relay: int, cut: CutId, task: int = 0) -> list[BatchInstruction]:
        """Admit a relay, or refuse it; the first of a batch ends the batch before.

        A second relay for the same task means that Spark considers the first one lost, with
        the results that it has not written yet. So the whole batch must run again.
        """
        if cut != (self.batch, self.attempt):
            newest = max(self.attempt, self._store.newest_attempt())
            if cut.attempt < newest or cut.batch < self.batch:
                now = cut.attempt, cut.batch
                return [RefuseRelay(relay, f"a later attempt or batch than {now} has begun")]
            begun = self._begun(cut)
        elif self.relays.lost or self._cutting is not None:
            return [RefuseRelay(relay, LOST)]
        elif self.relays.has(task):
            lost = self.relays.lose()
            return [RefuseRelay(each, LOST) for each in (*lost, relay)]
        else:
            begun = []
        self.relays.came(relay, task)
        return [*begun, *self._handed_over()]

    def relays_are(self, cut: CutId, number: int) -> list[BatchInstruction]:
        if cut != (self.batch, self.attempt):
            return []
        self.relays.expected = number
        return self._cut()

    def _begun(self, cut: CutId) -> list[BatchInstruction]:
        """Begin a batch: the one before it is committed, or this is another attempt at it."""
        over = [RefuseRelay(relay, "its batch is over") for relay in self.relays]
        self.relays, self._cutting = BatchRelays(), None
        base = self._store.last(cut.batch - 1)
        restored: list[BatchInstruction] = []
        if base not in self._memory or not self._store.log.is_own:
            # This host is new, another has continued its log, or Spark went back further.
            restored = [Restore(self._recovered(base))]
            self._committed.clear()
        elif cut.batch == self.batch:
            # A new attempt: results handed over since *base* may not have been written.
            self.leaving.again(lambda: self._store.log.since(base))
        self.leaving.committed()
        known = self._memory[base]
        self._memory, self._floors = {base: known}, known.floors
        self._drop_before(base, known.spilled)
        self.batch, self.attempt = cut
        return [*over, *restored, *self.state.committed(base.batch - self._kept)]

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
            self._store.segments.drop(cut.batch, [segment.name for segment in segments])
            self._unlogged.append(Committed(cut))

    def _recovered(self, base: CutId) -> Cut:
        """Restore a cut, replay the log since, and return the cut with the latest broadcasts.

        Results that were logged leave again.
        """
        cut = self._store.load(base)
        self._restore(cut)
        latest = {name: list(records) for name, records in cut.latest.items()}
        logged = (entry for group in self._store.log.recover(base) for entry in group)
        if (first := next(logged, None)) is not None:
            for segment in cut.spilled:  # the log may close records that were spilled
                self.fetched(segment.operator)
            for entry in chain([first], logged):
                self._replay(entry, latest)
        self.leaving.again(lambda: self._store.log.since(base))
        self._unlogged_start = cut.clock is None or self.clock.in_doubt
        return msgspec.structs.replace(
            cut, latest={name: tuple(records) for name, records in latest.items()}
        )

    def _replay(self, entry: Entry, latest: dict[str, list[Record]]) -> None:
        match entry:
            case Took(root, provenance):
                self._is_new(root, provenance)  # to remember its id
                self.taken[root.partition] = root.offset + 1
                self.clean = None
            case Entered(record):
                self.clean = None
                self.reminders.entered(record.root)
                self._number = max(self._number, record.number)
                self.open[record.number] = record
            case Did(number):
                if self.open.pop(number, None) is None:
                    raise EngineError(
                        f"its log closes record {number}, which was not open; restore its "
                        "folder, or start without this state (--fresh)"
                    )
            case Leaving():
                self.leaving.handed([entry])
            case Changed(operator, key, state):
                self.state.change(operator, key, state)
            case Started(clock):
                self.clock.restore(clock)
            case Kept(operator, record):
                latest.setdefault(operator, []).append(record)

    def _restore(self, cut: Cut) -> None:
        self.taken = dict(cut.taken)
        self.open = {record.number: record for record in cut.open}
        self._number = max(self._number, cut.numbered)
        self.spill.restore(cut.spilled)
        self.state.restore(cut.changed, batch=cut.id.batch)
        self.clock.restore(cut.clock)
        self.reminders.restore(cut.reminded)
        self._known = {
            partition: Repetitions(self._id_window, memory)
            for partition, memory in cut.known.items()
        }
        self.leaving.clear()
        self._memory = {cut.id: _Known(floors(cut), cut.spilled)}
        self.clean = cut.id.batch if self._empty else None

    def takes(self, relay: int, root: Root, provenance: Provenance | None = None) -> bool:
        """Take a root; return False if it is a repetition by Spark or by its producer.

        Rows of a relay that is not of the current batch are ignored.
        """
        if relay not in self.relays:
            return False
        self.relays.reader_of[root.partition] = relay
        if root.offset < self.taken.get(root.partition, 0):
            self.repeated += 1
            return False
        self.taken[root.partition] = root.offset + 1
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
        self.relays.ended(relay)
        return self._cut()

    def relay_left(self, relay: int) -> list[BatchInstruction]:
        """Remove a relay: it is finished, or the batch must run again.

        If a task is lost with its executor, Spark would repeat that task within the batch, and
        results that the first had not written would be lost. So the batch fails as a whole.
        """
        return [RefuseRelay(other, LOST) for other in self.relays.left(relay)]

    def drain(self) -> list[BatchInstruction]:
        """Drain the part: from now on a cut waits until nothing is open."""
        self.draining = True
        return self._cut()

    # -- cuts -----------------------------------------------------------------------------

    def _cut(self) -> list[BatchInstruction]:
        if self._cutting is not None or not self.relays.all_ended:
            return []
        if self.leaving.in_log:  # a commit would drop results not replayed yet
            return []
        if self.draining and not self._empty:
            return []
        # Results that waited for a replay from the log precede this cut: they leave with its
        # batch.
        handed = self._handed()
        now = CutId(self.batch, self.attempt)
        cuts, changed = self.state.cut(now)
        self._unlogged.append(LogMark(now))
        self._cutting = Cut(
            id=now,
            taken=dict(self.taken),
            open=tuple(self.open.values()),
            latest=self.latest(),
            spilled=self.spill.segments(self.batch),
            changed=cuts,
            known={place: known.memory.copied() for place, known in self._known.items()},
            reminded=self.reminders.numbers(),
            numbered=self._number,
            clock=self.clock.reading(),
        )
        if not self._empty:
            self.clean = None
        elif self.clean is None:
            self.clean = self.batch  # unchanged by later batches without a record
        return [*handed, SaveCut(self._cutting, changed)]

    def saved(self, cut: CutId) -> list[BatchInstruction]:
        """Let relays finish: their cut is on disk."""
        if self._cutting is None or cut != self._cutting.id:
            return []  # another attempt has begun
        self._memory[cut] = _Known(floors(self._cutting), self._cutting.spilled)
        self.relays.finished = True
        return [FinishRelay(relay) for relay in self.relays]

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
        self.open[entered.number] = entered
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
        self.spill.put(self.batch, self._numbered(record))

    def put_back(self, number: int) -> None:
        """Move a restored record from memory to disk."""
        self.spill.put(self.batch, self.open.pop(number))

    def fetched(self, operator: str) -> Sequence[OpenRecord]:
        """Move the oldest spilled records of an operator into memory, and return them."""
        fetched = self.spill.take(operator)
        self.open.update((record.number, record) for record in fetched)
        return fetched

    def changed(self, operator: str, key: str, state: bytes) -> None:
        """Set the state of a key; an empty one removes it."""
        self._unlogged.append(Changed(operator, key, state))
        self.state.change(operator, key, state)

    def kept(self, operator: str, record: Record) -> None:
        """Log that an operator keeps a broadcast record for processors that start later."""
        self._unlogged.append(Kept(operator, record))

    def done(self, number: int, results: Iterable[Leaving]) -> list[BatchInstruction]:
        """Close a record and hand over its results; its outputs must be open already."""
        del self.open[number]
        self._unlogged.append(Did(number))
        self._left(results)
        handed = self._handed()
        return [*handed, *self._cut()] if self.draining else handed

    def hand_on(self) -> list[BatchInstruction]:
        """Hand over the next portion of a replay from the log, and resume after the last."""
        return [*self._handed_over(), *self._handed(), *self._cut()]

    def _left(self, results: Iterable[Leaving]) -> None:
        for leaving in results:
            self.leaving.add(leaving)
            self._unlogged.append(leaving)

    def _handed(self) -> list[BatchInstruction]:
        """Hand results over to relays, unless a replay from the log must leave first."""
        return [] if self.leaving.in_log else self._handed_over()

    def _handed_over(self) -> list[BatchInstruction]:
        # Results after a cut belong to the next batch, so they wait for its relays.
        if self._cutting is not None or not self.leaving or not self.relays:
            return []
        return [
            HandOver(
                self.relays.of(leaving.root.partition),
                leaving,
                self._floors.get(leaving.root.partition, 0),
            )
            for leaving in self.leaving.hand_over()
        ]

"""What a part took from Spark and gave back: the part's side of Spark's batches.

Spark runs a batch with one relay for each partition. When all relays have handed over all
that Spark read, the ledger makes a cut of what is open, and no relay ends before that is on
disk: so Spark commits a batch only with its cut, and a batch waits for no record.

A batch that fails is run again, by a new attempt, with other ends. What was taken since the
last committed cut is not taken again; what was given back since then may not have been
written, so it is given back again, whether or not its root comes again. A ledger whose memory
does not come of the committed cut is restored from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import msgspec

from sojourn.host.batch.batch_relays import LOST, BatchRelays
from sojourn.host.batch.cut import (
    Cut,
    CutId,
    Leaving,
    OpenRecord,
    Partition,
    Root,
    Segment,
    floors,
)
from sojourn.host.batch.instructions import (
    Arrival,
    CutInstruction,
    FinishRelay,
    HandOver,
    RefuseRelay,
    Restore,
    SaveCut,
)
from sojourn.host.batch.leaving_results import LeavingResults, as_entry, as_leaving
from sojourn.host.batch.log_entries import (
    Changed,
    Committed,
    Did,
    Entered,
    Entry,
    Kept,
    Left,
    Mark,
    Took,
)
from sojourn.host.batch.repetitions import Memory, Provenance, Repetitions
from sojourn.host.batch.spill import SegmentStore, Spill
from sojourn.host.process.messages import Record
from sojourn.host.state.keyed_state import KeyedState, StateStore
from sojourn.host.state.reminders import Reminders

__all__ = ["CutStore", "Ledger"]


# Of results that were handed over so many are kept; if there are more, all are in the log.
_MOST_HANDED = 50_000
# Records that a producer has named itself are compared with so many before them.
_WINDOW = 100_000


class CutStore(SegmentStore, StateStore, Protocol):
    """Cuts on disk, with the segments and the states that are in them."""

    def last(self, batch: int) -> CutId:
        """Return the cut of a batch that is committed: that of the last attempt at it."""
        ...

    def load(self, cut: CutId) -> Cut:
        """Return a cut; that of the batch before the first has nothing in it."""
        ...

    @property
    def log_is_own(self) -> bool:
        """Whether no other host has continued the log."""
        ...

    def logged(self, base: CutId) -> Iterable[Iterable[Entry]]:
        """Return what was logged since a cut, by groups."""
        ...

    def recover(self, base: CutId) -> Iterable[Iterable[Entry]]:
        """Return what was logged since a cut, by groups, and continue the log from there."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """Of a cut: below which offsets all had left by then, and what was spilled."""

    floors: dict[Partition, int]
    spilled: tuple[Segment, ...]


class Ledger:
    """Roots taken, records open and results that leave, between the batches of Spark.

    So many were *repeated*: Spark brought them again. If nothing is open, and nothing was when
    the last cut was made or has come since, that is *clean*: the first batch that ended so.
    *reminded* are the partitions of operators that may ask for reminders.
    """

    def __init__(
        self,
        store: CutStore,
        spill: Spill | None = None,
        *,
        most_handed: int = _MOST_HANDED,
        reminded: Mapping[str, str] | None = None,
    ) -> None:
        self._store, self._spill = store, Spill(store) if spill is None else spill
        self._state = KeyedState(store)
        self.reminders = Reminders(self._state, reminded or {})
        self._attempt, self._batch = -1, -1
        self._memory: dict[CutId, _Known] = {}  # the cuts that all of this comes of
        self._relays = BatchRelays()
        self._cutting: Cut | None = None
        self._draining = False
        self._taken: dict[Partition, int] = {}
        self._place = 0
        self._open: dict[int, OpenRecord] = {}
        self._leaving = LeavingResults(most_handed)
        self._floors: dict[Partition, int] = {}
        self._unlogged: list[Entry] = []
        self._known: dict[Partition, Repetitions] = {}
        self.repeated = 0
        self.clean: int | None = None

    @property
    def taken(self) -> dict[Partition, int]:
        """The offset that comes next, by partition."""
        return self._taken

    @property
    def batch(self) -> int:
        """The batch that runs, or ran last; -1 before the first."""
        return self._batch

    @property
    def attempt(self) -> int:
        """The attempt at it."""
        return self._attempt

    @property
    def relays(self) -> int:
        """How many relays of the batch there are."""
        return len(self._relays)

    @property
    def missing(self) -> str:
        """What a cut waits for, of relays that have ended; empty if for nothing."""
        return "" if self._cutting is not None else self._relays.missing

    @property
    def open(self) -> dict[int, OpenRecord]:
        """Records in memory that are not done, by their place in the order of arrival."""
        return self._open

    @property
    def spill(self) -> Spill:
        """Records on disk that are not done."""
        return self._spill

    @property
    def state(self) -> KeyedState:
        """What functions keep for each key."""
        return self._state

    @property
    def draining(self) -> bool:
        """Whether it is to end with nothing open."""
        return self._draining

    @property
    def _empty(self) -> bool:
        return not self._open and not len(self._spill)

    # -- relays ---------------------------------------------------------------------------

    def knows(self, relay: int) -> bool:
        """Tell whether a relay is of the batch that runs."""
        return relay in self._relays

    def relay_came(self, relay: int, arrival: Arrival) -> list[CutInstruction]:
        """Return what to do when a relay begins; the first of a batch ends those before."""
        now = arrival.attempt, arrival.batch
        if now != (self._attempt, self._batch):
            if arrival.attempt < self._attempt or arrival.batch < self._batch:
                return [RefuseRelay(relay, f"a later attempt or batch than {now} has begun")]
            begun = self._begun(arrival)
        elif self._relays.lost or self._cutting is not None:
            return [RefuseRelay(relay, LOST)]
        else:
            begun = []
        self._relays.came(relay)
        return [*begun, *self._handed()]

    def relays_are(self, attempt: int, batch: int, number: int) -> list[CutInstruction]:
        """Return what to do when it is known how many relays a batch has."""
        if (attempt, batch) != (self._attempt, self._batch):
            return []
        self._relays.expect(number)
        return self._cut()

    def _begun(self, arrival: Arrival) -> list[CutInstruction]:
        """Begin a batch: the one before is committed, or was this one and is run again."""
        over = [RefuseRelay(relay, "its batch is over") for relay in self._relays]
        self._relays, self._cutting = BatchRelays(), None
        base = self._store.last(arrival.batch - 1)
        restored: list[CutInstruction] = []
        if base not in self._memory or not self._store.log_is_own:
            restored = [Restore(self._recovered(base))]
        elif arrival.batch == self._batch:
            self._leaving.again(lambda: self._store.logged(base))
        self._leaving.committed()
        known = self._memory[base]
        self._memory, self._floors = {base: known}, known.floors
        self._spill.committed(base.batch, known.spilled)
        self._unlogged.append(Committed(base))
        self._attempt, self._batch = arrival.attempt, arrival.batch
        return [*over, *restored, *self._state.committed(base.batch)]

    def _recovered(self, base: CutId) -> Cut:
        """Go on from a cut, and from what was logged since; return what operators keep then."""
        cut = self._store.load(base)
        self._restore(cut)
        latest = {name: list(records) for name, records in cut.latest.items()}
        logged = (entry for group in self._store.recover(base) for entry in group)
        if (first := next(logged, None)) is not None:
            for segment in cut.spilled:  # what was spilled then may be done by now
                self.fetched(segment.operator)
            places = {
                (record.operator, record.record.name): place
                for place, record in self._open.items()
            }
            for entry in chain([first], logged):
                self._replay(entry, places, latest)
        return msgspec.structs.replace(
            cut, latest={name: tuple(records) for name, records in latest.items()}
        )

    def _replay(
        self,
        entry: Entry,
        places: dict[tuple[str, str], int],
        latest: dict[str, list[Record]],
    ) -> None:
        match entry:
            case Took(root, provenance):
                self._is_new(root, provenance)
                self._taken[root.partition] = root.offset + 1
                self.clean = None
            case Entered(record):
                self.clean = None
                places[record.operator, record.record.name] = self._placed(record)
            case Did(operator, name):
                del self._open[places.pop((operator, name))]
            case Left():
                self._leaving.add(as_leaving(entry))
            case Changed(operator, key, state):
                self._state.change(operator, key, state)
            case Kept(operator, record):
                latest.setdefault(operator, []).append(record)

    def _restore(self, cut: Cut) -> None:
        self._taken = dict(cut.taken)
        self._open = {}
        for record in cut.open:
            self._placed(record)
        self._spill.restore(cut.spilled)
        self._state.restore(cut.changed)
        self.reminders.restore(cut.reminded)
        self._known = {
            partition: Repetitions(_WINDOW, None, memory)
            for partition, memory in cut.known.items()
        }
        self._leaving.clear()
        self._memory = {cut.id: _Known(floors(cut), cut.spilled)}
        self.clean = cut.id.batch if self._empty else None

    def takes(self, relay: int, root: Root, provenance: Provenance | None = None) -> bool:
        """Return whether a root is to be taken: it was not before, here or in its stream."""
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
        """Return whether a record is not one that its writer has repeated."""
        if provenance is None:
            return True
        known = self._known.get(root.partition)
        if known is None:
            known = self._known[root.partition] = Repetitions(_WINDOW, None, Memory())
        if known.is_new(provenance):
            return True
        self.repeated += 1
        return False

    def relay_ended(self, relay: int) -> list[CutInstruction]:
        """Return what to do when a relay has handed over all that Spark has read."""
        self._relays.ended(relay)
        return self._cut()

    def relay_left(self, relay: int) -> list[CutInstruction]:
        """Return what to do without a relay: it is finished, or the batch is to run again.

        A task that is lost with its executor Spark would run again within the batch, and never
        ask for what the first had not written yet. So the batch fails as a whole.
        """
        return [RefuseRelay(other, LOST) for other in self._relays.left(relay)]

    def drain(self) -> list[CutInstruction]:
        """Return what to do to end in order: from now on a cut waits for all that is open."""
        self._draining = True
        return self._cut()

    # -- cuts -----------------------------------------------------------------------------

    def _cut(self) -> list[CutInstruction]:
        if self._cutting is not None or not self._relays.all_ended:
            return []
        if self._draining and not self._empty:
            return []
        now = CutId(self._batch, self._attempt)
        cuts, changed = self._state.cut(now)
        self._unlogged.append(Mark(now))
        self._cutting = Cut(
            id=now,
            taken=dict(self._taken),
            open=tuple(self._open.values()),
            spilled=self._spill.segments(self._batch),
            changed=cuts,
            known={partition: known.copied() for partition, known in self._known.items()},
            reminded=self.reminders.floors(),
        )
        if not self._empty:
            self.clean = None
        elif self.clean is None:
            self.clean = self._batch  # and stays, while batches come and go without a record
        return [SaveCut(self._cutting, changed)]

    def saved(self, cut: CutId) -> list[CutInstruction]:
        """Return what to do when a cut is on disk."""
        if self._cutting is None or cut != self._cutting.id:
            return []  # another attempt has begun
        self._memory[cut] = _Known(floors(self._cutting), self._cutting.spilled)
        self._relays.finished = True
        return [FinishRelay(relay) for relay in self._relays]

    # -- records --------------------------------------------------------------------------

    def unlogged(self) -> list[Entry]:
        """Return what has happened since it was last asked, to be logged before any effect."""
        entries, self._unlogged = self._unlogged, []
        return entries

    def entered(self, record: OpenRecord) -> int:
        """Return the place of a record that is open from now on."""
        self._unlogged.append(Entered(record))
        self.clean = None
        return self._placed(record)

    def _placed(self, record: OpenRecord) -> int:
        self._place += 1
        self._open[self._place] = record
        return self._place

    def leaves(self, leaving: Leaving) -> list[CutInstruction]:
        """Return what to do with a result of a root that was just taken, and is done."""
        self._left([leaving])
        return self._handed()

    def spilled(self, record: OpenRecord) -> None:
        """Let a record that is open from now on wait on disk."""
        self._unlogged.append(Entered(record))
        self.clean = None
        self._spill.put(self._batch, record)

    def put_back(self, place: int) -> None:
        """Let a record that was restored wait on disk again."""
        self._spill.put(self._batch, self._open.pop(place))

    def fetched(self, operator: str) -> dict[int, OpenRecord]:
        """Return records of an operator that were on disk, by their places in memory."""
        return {self._placed(record): record for record in self._spill.take(operator)}

    def changed(self, operator: str, key: str, state: bytes) -> None:
        """Let a key have another state, or none if it is empty."""
        self._unlogged.append(Changed(operator, key, state))
        self._state.change(operator, key, state)

    def kept(self, operator: str, record: Record) -> None:
        """Take note that an operator keeps a record for processors that start later."""
        self._unlogged.append(Kept(operator, record))

    def done(self, place: int, results: Iterable[Leaving]) -> list[CutInstruction]:
        """Return what to do with the results of a record, once what it sends on is open."""
        done = self._open.pop(place)
        self._unlogged.append(Did(done.operator, done.record.name))
        self._left(results)
        handed = self._handed()
        return [*handed, *self._cut()] if self._draining else handed

    def _left(self, results: Iterable[Leaving]) -> None:
        for leaving in results:
            self._leaving.add(leaving)
            self._unlogged.append(as_entry(leaving))

    def _handed(self) -> list[CutInstruction]:
        """Give results to relays, unless what leaves now is in the cut already."""
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

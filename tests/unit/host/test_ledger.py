"""A ledger by hand: what it refuses, and when it goes on from memory."""

from sojourn.host.cut import Cut, CutId, Leaving, OpenRecord, Root
from sojourn.host.ledger import (
    Arrival,
    FinishRelay,
    HandOver,
    Ledger,
    RefuseRelay,
    Restore,
    SaveCut,
)
from unit.host.spark_stand_in import Disk

LINES = ("lines", 0)


def arrival(batch, attempt=1, relays=1):
    return Arrival(attempt=attempt, batch=batch, partition=LINES, relays=relays)


def kinds(instructions):
    return [type(instruction) for instruction in instructions]


def cut_of(ledger, relay, store):
    (save,) = ledger.relay_ended(relay)
    store.cuts[save.cut.id] = save.cut
    return save.cut


def entered(ledger, relay, offset):
    return ledger.entered(OpenRecord(ledger.takes(relay, offset), "split", f"line {offset}"))


def test_a_batch_ends_when_its_cut_is_on_disk_and_waits_for_no_record():
    store = Disk()
    ledger = Ledger(store)
    assert kinds(ledger.relay_came(1, arrival(0))) == [Restore]
    entered(ledger, 1, 7)
    cut = cut_of(ledger, 1, store)
    assert (cut.taken, [record.record for record in cut.open]) == ({LINES: 8}, ["line 7"])
    assert ledger.saved(CutId(5, 5)) == []
    assert ledger.saved(cut.id) == [FinishRelay(1)]
    ledger.relay_left(1)
    assert ledger.relay_came(2, arrival(1)) == []
    assert len(ledger.open) == 1


def test_a_cut_waits_for_all_relays():
    ledger = Ledger(Disk())
    ledger.relay_came(1, arrival(0, relays=2))
    assert ledger.relay_ended(1) == []
    ledger.relay_came(2, arrival(0, relays=2))
    ledger.relay_left(1)
    assert ledger.relay_ended(2) == []
    ledger.relay_came(3, arrival(0, relays=2))
    assert kinds(ledger.relay_ended(3)) == [SaveCut]


def test_results_after_a_cut_wait_for_the_next_batch():
    store, result = Disk(), Leaving(Root(LINES, 0), "word")
    ledger = Ledger(store)
    ledger.relay_came(1, arrival(0))
    place = entered(ledger, 1, 0)
    cut = cut_of(ledger, 1, store)
    assert ledger.done(place, [], [result]) == ([], [])
    ledger.saved(cut.id)
    ledger.relay_left(1)
    assert ledger.relay_came(2, arrival(1)) == [HandOver(2, result, 0)]


def test_a_batch_that_runs_again_takes_nothing_twice_and_gives_all_results_again():
    store, result = Disk(), Leaving(Root(LINES, 0), "word")
    ledger = Ledger(store)
    ledger.relay_came(1, arrival(0))
    place = entered(ledger, 1, 0)
    assert ledger.done(place, [], [result])[1] == [HandOver(1, result, 0)]
    again = ledger.relay_came(2, arrival(0, attempt=2))
    assert kinds(again) == [RefuseRelay, HandOver]
    assert ledger.takes(2, 0) is None
    assert ledger.takes(1, 1) is None  # of a relay that is refused nothing is taken
    assert ledger.takes(2, 1) == Root(LINES, 1)


def test_what_is_committed_is_not_given_again():
    store, result = Disk(), Leaving(Root(LINES, 0), "word")
    ledger = Ledger(store)
    ledger.relay_came(1, arrival(0))
    ledger.done(entered(ledger, 1, 0), [], [result])
    ledger.saved(cut_of(ledger, 1, store).id)
    assert ledger.relay_came(2, arrival(1, attempt=2)) == [RefuseRelay(1, "its batch is over")]


def test_late_relays_of_attempts_and_batches_that_are_over_change_nothing():
    store = Disk()
    ledger = Ledger(store)
    ledger.relay_came(1, arrival(0, attempt=2))
    ledger.saved(cut_of(ledger, 1, store).id)
    ledger.relay_came(2, arrival(1, attempt=2))
    for late in (arrival(1, attempt=1), arrival(0, attempt=3)):
        assert kinds(ledger.relay_came(3, late)) == [RefuseRelay]
    assert ledger.takes(2, 0) == Root(LINES, 0)


def test_memory_that_does_not_come_of_the_committed_cut_is_replaced():
    store = Disk()
    ledger = Ledger(store)
    ledger.relay_came(1, arrival(0))
    entered(ledger, 1, 0)
    elsewhere = OpenRecord(Root(LINES, 3), "split", "line 3")
    store.cuts[CutId(0, 2)] = Cut(id=CutId(0, 2), taken={LINES: 5}, open=(elsewhere,))
    (_, restored) = ledger.relay_came(2, arrival(1, attempt=3))
    assert restored == Restore(store.cuts[CutId(0, 2)])
    assert list(ledger.open.values()) == [elsewhere]
    assert ledger.takes(2, 4) is None

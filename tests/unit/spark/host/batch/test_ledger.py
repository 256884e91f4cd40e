"""A ledger by hand: what it refuses, and when it goes on from memory."""

import msgspec
import pytest

from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.desk.instructions import (
    FinishRelay,
    HandOver,
    RefuseRelay,
    Restore,
    SaveCut,
)
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.repetitions import Input, Provenance
from unit.spark.host.spark_stand_in import Disk, Store

LOST = "a task of its batch was lost, so the whole batch runs again"

LINES = ("lines", 0)
WORD = Record("line 0.split.0", b"")


def came(ledger, relay, batch, attempt=1, relays=1, task=0):
    """Let a relay come to a batch that is known to have so many."""
    done = ledger.relay_came(relay, CutId(batch, attempt), task)
    return [*done, *ledger.relays_are(CutId(batch, attempt), relays)]


def kinds(instructions):
    return [type(instruction) for instruction in instructions]


def cut_of(ledger, relay, store):
    (save,) = ledger.relay_ended(relay)
    store.cuts[save.cut.id] = save.cut
    return save.cut


def takes(ledger, relay, offset):
    return ledger.takes(relay, Root(LINES, offset))


def entered(ledger, relay, offset):
    assert takes(ledger, relay, offset)
    record = OpenRecord(Root(LINES, offset), "split", Record(f"line {offset}", b""))
    return ledger.entered(record).number


def test_a_cut_is_not_changed_by_what_happens_while_it_is_written():
    """A thread writes it, and another attempt at the batch may begin meanwhile."""
    ledger = Ledger(Disk())

    def taken(relay, offset):
        inputs = [
            Input(writer="a", topic="in@m", partition=0, offset=offset, floor=floor)
            for floor in (0, offset)
        ]
        for number, entered in enumerate(inputs):
            told = Provenance(identity=f"{offset}.{number}", inputs=(entered,), named=True)
            assert ledger.takes(relay, Root(LINES, 2 * offset + number), told)
        told = Provenance(identity=f"order {offset}", named=True)
        assert ledger.takes(relay, Root(("orders", 0), offset), told)

    came(ledger, 1, 0)
    taken(1, 1)
    entered(ledger, 1, 10)
    (save,) = ledger.relay_ended(1)
    before = msgspec.msgpack.encode(save.cut)
    came(ledger, 2, 0, attempt=2)
    taken(2, 7)
    entered(ledger, 2, 20)
    assert msgspec.msgpack.encode(save.cut) == before


def test_no_number_of_a_record_on_disk_is_given_again_after_a_cut():
    """The log closes records by number."""
    store = Disk()
    ledger = Ledger(store)
    came(ledger, 1, 0)
    first = entered(ledger, 1, 0)
    for offset in range(1, 4):
        assert takes(ledger, 1, offset)
        record = Record(f"line {offset}", b"")
        ledger.spilled(OpenRecord(Root(LINES, offset), "split", record))
    ledger.saved(cut_of(ledger, 1, store).id)
    again = Ledger(store)
    came(again, 2, 1)
    assert entered(again, 2, 4) > first + 3
    assert len({record.number for record in again.fetched("split")} | {*again.open}) == 5


def test_results_that_came_behind_those_in_the_log_leave_before_a_cut():
    """They are logged before the cut: nobody would read them there after its commit."""
    store = Store(Disk())
    ledger = Ledger(store, most_handed=4)

    def logged(instructions):
        store.log.append(ledger.unlogged())
        store.flush()
        return [each.leaving.record.name for each in instructions if isinstance(each, HandOver)]

    def done(number, name):
        return logged(ledger.done(number, [Leaving(Root(LINES, 0), Record(name, b""))]))

    logged(came(ledger, 1, 0, relays=2))
    first, *others = [entered(ledger, 1, offset) for offset in range(6)]
    assert [done(number, str(number))[0] for number in others] == [str(n) for n in others]
    logged(ledger.relay_left(1))
    handed = logged(came(ledger, 2, 0, attempt=2, relays=2))
    for _ in range(4):
        handed += logged(ledger.hand_on())
    assert done(first, "last") == []
    handed += logged(came(ledger, 3, 0, attempt=2, relays=2, task=1))
    assert handed == [str(n) for n in others]
    assert ledger.relay_ended(2) == []
    assert kinds(cut := ledger.relay_ended(3)) == [HandOver, SaveCut]
    assert logged(cut) == ["last"]


def test_a_batch_ends_when_its_cut_is_on_disk_and_waits_for_no_record():
    store = Disk()
    ledger = Ledger(store)
    assert kinds(came(ledger, 1, 0)) == [Restore]
    entered(ledger, 1, 7)
    cut = cut_of(ledger, 1, store)
    assert (cut.taken, [record.record.name for record in cut.open]) == ({LINES: 8}, ["line 7"])
    assert ledger.saved(CutId(5, 5)) == []
    assert ledger.saved(cut.id) == [FinishRelay(1)]
    ledger.relay_left(1)
    assert came(ledger, 2, 1) == []
    assert len(ledger.open) == 1


def test_a_cut_waits_for_all_relays():
    ledger = Ledger(Disk())
    came(ledger, 1, 0, relays=2)
    assert ledger.relay_ended(1) == []
    came(ledger, 2, 0, relays=2, task=1)
    assert kinds(ledger.relay_ended(2)) == [SaveCut]


def test_a_batch_that_has_lost_a_task_fails_as_a_whole():
    """Spark would run the task again, and nobody knows what the lost one has written."""
    ledger = Ledger(Disk())
    came(ledger, 1, 0, relays=2)
    came(ledger, 2, 0, relays=2, task=1)
    assert ledger.relay_left(1) == [RefuseRelay(2, LOST)]
    again = CutId(0, 1)
    assert ledger.relay_came(3, again) == [RefuseRelay(3, LOST)]
    assert ledger.relay_ended(2) == []
    came(ledger, 4, 0, attempt=2)
    assert kinds(ledger.relay_ended(4)) == [SaveCut]


@pytest.mark.parametrize("ended", [False, True])
def test_a_task_that_comes_again_while_its_first_relay_is_connected_fails_the_batch(ended):
    """Its machine has vanished without a word, with results that nobody has written."""
    ledger, root = Ledger(Disk()), Root(LINES, 0)
    came(ledger, 1, 0, relays=2)
    came(ledger, 2, 0, relays=2, task=1)
    result = Leaving(root, WORD)
    assert ledger.done(entered(ledger, 1, 0), [result]) == [HandOver(1, result, 0)]
    if ended:
        assert ledger.relay_ended(1) == []
    refused = came(ledger, 3, 0, relays=2)
    assert refused == [RefuseRelay(relay, LOST) for relay in (1, 2, 3)]
    assert not any(relay in ledger.relays for relay in (1, 2, 3))
    for relay in (1, 2, 3):
        assert not takes(ledger, relay, 1)
        assert ledger.relay_ended(relay) == []
    assert came(ledger, 4, 0, attempt=2, relays=2) == [HandOver(4, result, 0)]
    assert ledger.relay_ended(4) == []  # the other task has not begun
    assert ledger.relays.not_begun == "1 of 2 tasks of the batch have begun"


def test_a_task_that_runs_again_after_the_cut_is_refused():
    ledger = Ledger(Disk())
    came(ledger, 1, 0, relays=1)
    cut = ledger.relay_ended(1)[0].cut
    assert kinds(ledger.saved(cut.id)) == [FinishRelay]
    assert ledger.relay_left(1) == []
    assert ledger.relay_came(2, CutId(0, 1)) == [RefuseRelay(2, LOST)]


def test_a_cut_waits_until_it_is_known_how_many_relays_there_are():
    ledger = Ledger(Disk())
    ledger.relay_came(1, CutId(0, 1))
    assert ledger.relays.missing == ""
    assert ledger.relay_ended(1) == []
    assert ledger.relays.missing == "the number of tasks of the batch is not known"
    for other in (CutId(1, 1), CutId(0, 2)):
        assert ledger.relays_are(other, 1) == []
    assert ledger.relays_are(CutId(0, 1), 2) == []
    assert ledger.relays.missing == "1 of 2 tasks of the batch have begun"
    ledger.relay_came(2, CutId(0, 1), task=1)
    assert ledger.relays.missing == ""
    assert kinds(ledger.relay_ended(2)) == [SaveCut]


def test_results_leave_through_the_relay_of_their_root_or_any():
    ledger = Ledger(Disk())
    came(ledger, 1, 0, relays=2)
    came(ledger, 2, 0, relays=2, task=1)
    place = entered(ledger, 2, 0)
    here, there = Leaving(Root(LINES, 0), WORD), Leaving(Root(("lines", 1), 4), WORD)
    handed = ledger.done(place, [here, there])
    assert [over.relay for over in handed] == [2, 1]


def test_drained_a_cut_waits_for_all_that_is_open():
    store, result = Disk(), Leaving(Root(LINES, 0), WORD)
    ledger = Ledger(store)
    came(ledger, 1, 0)
    place = entered(ledger, 1, 0)
    ledger.drain()
    assert ledger.relay_ended(1) == []
    (handed, save) = ledger.done(place, [result])
    assert (handed, save.cut.open) == (HandOver(1, result, 0), ())
    assert ledger.saved(save.cut.id) == [FinishRelay(1)]
    assert ledger.clean == 0


def test_results_after_a_cut_wait_for_the_next_batch():
    store, result = Disk(), Leaving(Root(LINES, 0), WORD)
    ledger = Ledger(store)
    came(ledger, 1, 0)
    place = entered(ledger, 1, 0)
    cut = cut_of(ledger, 1, store)
    assert ledger.done(place, [result]) == []
    ledger.saved(cut.id)
    ledger.relay_left(1)
    assert came(ledger, 2, 1) == [HandOver(2, result, 0)]


def test_a_batch_that_runs_again_takes_nothing_twice_and_gives_all_results_again():
    store, result = Disk(), Leaving(Root(LINES, 0), WORD)
    ledger = Ledger(store)
    came(ledger, 1, 0)
    place = entered(ledger, 1, 0)
    assert ledger.done(place, [result]) == [HandOver(1, result, 0)]
    again = came(ledger, 2, 0, attempt=2)
    assert kinds(again) == [RefuseRelay, HandOver]
    assert not takes(ledger, 2, 0)
    assert not takes(ledger, 1, 1)  # of a relay that is refused nothing is taken
    assert takes(ledger, 2, 1)


def test_what_is_committed_is_not_given_again():
    store, result = Disk(), Leaving(Root(LINES, 0), WORD)
    ledger = Ledger(store)
    came(ledger, 1, 0)
    ledger.done(entered(ledger, 1, 0), [result])
    ledger.saved(cut_of(ledger, 1, store).id)
    assert came(ledger, 2, 1, attempt=2) == [RefuseRelay(1, "its batch is over")]


def test_late_relays_of_attempts_and_batches_that_are_over_change_nothing():
    store = Disk()
    ledger = Ledger(store)
    came(ledger, 1, 0, attempt=2)
    ledger.saved(cut_of(ledger, 1, store).id)
    came(ledger, 2, 1, attempt=2)
    for late in ((1, 1), (0, 3)):
        assert kinds(came(ledger, 3, *late)) == [RefuseRelay]
    assert takes(ledger, 2, 0)


def test_memory_that_does_not_come_of_the_committed_cut_is_replaced():
    store = Disk()
    ledger = Ledger(store)
    came(ledger, 1, 0)
    entered(ledger, 1, 0)
    elsewhere = OpenRecord(Root(LINES, 3), "split", Record("line 3", b""))
    store.cuts[CutId(0, 2)] = Cut(id=CutId(0, 2), taken={LINES: 5}, open=(elsewhere,))
    (_, restored) = came(ledger, 2, 1, attempt=3)
    assert restored == Restore(store.cuts[CutId(0, 2)])
    assert list(ledger.open.values()) == [elsewhere]
    assert not takes(ledger, 2, 4)


def test_what_has_come_since_the_last_cut_is_not_clean():
    store, result = Disk(), Leaving(Root(LINES, 0), WORD)
    ledger = Ledger(store)
    assert ledger.clean is None  # nobody knows what is on the disk
    came(ledger, 1, 0)
    assert ledger.clean == -1
    place = entered(ledger, 1, 0)
    assert ledger.clean is None
    ledger.saved(cut_of(ledger, 1, store).id)
    ledger.done(place, [result])
    assert ledger.clean is None  # its result may not have been written
    came(ledger, 2, 1)
    ledger.saved(cut_of(ledger, 2, store).id)
    assert ledger.clean == 1
    came(ledger, 3, 2)
    ledger.saved(cut_of(ledger, 3, store).id)
    assert ledger.clean == 1  # nothing has come in between
    again = Ledger(store)
    came(again, 4, 3, attempt=2)
    assert again.clean == 2

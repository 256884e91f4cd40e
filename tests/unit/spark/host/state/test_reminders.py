"""Reminders of keys: their ids, their numbers, and when they come."""

import pytest

from sojourn.app.reminder import State
from sojourn.spark.host.state.keyed_state import KeyedState
from sojourn.spark.host.state.part_clock import ClockReading, PartClock
from sojourn.spark.host.state.reminders import Reminders
from sojourn.spark.wire.record import Record, Root, reminder_key
from unit.spark.host.spark_stand_in import Disk

S = 1_000_000
YEAR_S = 365 * 86_400.0
PARTITION = ("count@reminders@mark", 0)
ASKING = Record("lines/0/7", b"", key='["a"]', position="lines/0/7", message_key=b"k", room=9)


class CountingDisk(Disk):
    """Knows how many states it was asked for at a time."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def ordered(self, operator, start, end, most):
        self.asked.append(most)
        return super().ordered(operator, start, end, most)


class Asked:
    """Reminders of an operator, by a clock that is told."""

    def __init__(self, disk=None, numbers=None):
        self.now_s, self.wall_s = 0.0, 1000.0
        self.state = KeyedState(disk or Disk())
        self.clock = PartClock(lambda: self.wall_s, lambda: self.now_s)
        self.clock.restore(ClockReading(0, 1000 * S))
        self.reminders = Reminders(self.state, {"count": PARTITION[0]}, self.clock)
        self.reminders.restore({PARTITION: 0} if numbers is None else numbers)

    def ask(self, *reminders, record=ASKING, now_s):
        self.now_s = now_s
        for change in self.reminders.asked("count", record, reminders):
            self.state.change(*change)

    def due(self, now_s):
        """Let time pass once."""
        self.now_s, found = now_s, []
        for change, record in self.reminders.due():
            self.state.change(*change)
            found.append(record)
        return found

    def all_due(self, now_s):
        """Let time pass until no more is due."""
        found = self.due(now_s)
        while self.reminders.next_us <= now_s * S:
            found += self.due(now_s)
        return found


@pytest.fixture
def asked():
    return Asked()


def test_a_reminder_is_a_record_of_the_key_and_the_root_of_what_comes_of_it(asked):
    asked.ask((2.0, "quiet"), now_s=10)
    assert asked.due(11) == []
    asked.wall_s = 1012.5
    ((root, operator, record),) = [(r.root, r.operator, r.record) for r in asked.due(12.5)]
    assert (root, operator) == ((PARTITION, 0), "count")
    assert (record.stream, record.key, record.written_s) == ("count@reminders", '["a"]', 1012.0)
    assert record.root == f"{PARTITION[0]}/0/0"
    assert (record.position, record.message_key, record.room) == ("lines/0/7", b"k", 9)
    assert reminder_key(record.payload) == '["a"]'
    assert asked.due(100) == []


def test_the_id_follows_from_the_record_that_asked_and_not_from_the_time(asked):
    asked.ask((1.0, "x"), (1.0, "x"), now_s=10)
    again = Asked()
    again.ask((1.0, "x"), (1.0, "x"), now_s=500)
    names = [record.record.name for record in asked.due(11)]
    assert names == [record.record.name for record in again.due(501)]
    assert len(set(names)) == 2


def test_a_cut_has_the_number_of_the_next_one_whatever_is_pending(asked):
    asked.ask((5.0, ""), (6.0, ""), (60.0, ""), now_s=10)
    assert [record.root.offset for record in asked.due(20)] == [0, 1]
    assert asked.reminders.numbers() == {PARTITION: 2}


def test_those_that_were_due_after_the_cut_keep_their_numbers():
    asked = Asked(numbers={PARTITION: 7})
    for root in (Root(PARTITION, 9), Root(PARTITION, 8), Root(("lines", 0), 100)):
        asked.reminders.entered(root)
    assert asked.reminders.numbers() == {PARTITION: 10}


def test_an_operator_that_was_gone_begins_above_all_that_it_had():
    """What readers of its results remember is of its earlier numbers."""
    other = ("other@reminders@mark", 0)
    asked = Asked(numbers={other: 3})
    assert asked.reminders.numbers() == {PARTITION: 1000 * S, other: 3}


def test_many_that_are_due_together_come_a_few_at_a_time_in_order(asked):
    for number in range(2600):
        record = Record(f"lines/0/{number}", b"", key='["a"]')
        asked.ask((10.0 - number % 7, ""), record=record, now_s=0)
    first = asked.due(60)
    assert 0 < len(first) <= 1000
    assert asked.reminders.numbers() == {PARTITION: len(first)}
    assert asked.reminders.next_us <= 60 * S  # the rest at once
    rest = asked.all_due(60)
    assert [record.root.offset for record in (*first, *rest)] == list(range(2600))
    due = [record.record.written_s for record in (*first, *rest)]
    assert due == sorted(due)


def test_what_was_removed_is_passed_over_a_few_at_a_time(asked):
    """As when a host was killed half way through: none of this is one long step."""
    disk = CountingDisk()
    asked = Asked(disk)
    for number in range(5000):
        asked.ask((1.0, ""), record=Record(f"lines/0/{number}", b"", key="[]"), now_s=0)
    pending = [key for key, _ in asked.state.ordered("count@reminders", "", "9", most=9999)[0]]
    for key in pending[:4000]:
        asked.state.change("count@reminders", key, b"")
    disk.asked = []
    steps = 0
    while asked.reminders.next_us <= 5 * S:
        asked.due(5)
        steps += 1
    assert max(disk.asked) <= 1000
    assert steps > 4  # of a thousand each
    assert asked.reminders.numbers() == {PARTITION: 1000}


def test_a_wall_clock_that_is_wrong_delays_nothing_and_calls_nothing_early(asked):
    asked.ask((3600.0, "before"), now_s=0)
    asked.wall_s += 10 * YEAR_S
    assert asked.due(1) == []
    asked.ask((30.0, "while it is wrong"), now_s=2)
    asked.wall_s -= 10 * YEAR_S
    asked.ask((30.0, "after"), now_s=3)
    assert len(asked.due(33)) == 2
    assert len(asked.due(3600)) == 1


def test_nothing_is_due_before_it_is_known_what_is_pending():
    unknown = Reminders(KeyedState(Disk()), {"count": PARTITION[0]})
    assert list(unknown.due()) == []
    assert (unknown.numbers(), unknown.next_us) == ({}, None)


def test_what_is_no_reminder_has_no_key():
    assert reminder_key(b'{"word":"a"}') is None


@pytest.mark.parametrize(
    ("asked_for", "problem"),
    [
        ({"after_s": -1}, "after_s: -1 is not between 0 and"),
        ({"after_s": float("nan")}, "after_s: nan is not between 0 and"),
        ({"after_s": float("inf")}, "after_s: inf is not between 0 and"),
        ({"after_s": 1e12}, "100 years"),
        ({"after_s": "3"}, "after_s: '3' is not a number of seconds"),
        ({"after_s": True}, "after_s: True is not a number of seconds"),
        ({"after_s": 1, "note": 5}, "note: 5 is not text"),
        ({"after_s": 1, "note": "a\ud800"}, "cannot be written as UTF-8"),
        ({"after_s": 1, "note": "x" * 10_001}, "keep it in the state instead"),
    ],
)
def test_what_cannot_be_asked_for_is_named(asked_for, problem):
    state = State()
    with pytest.raises((TypeError, ValueError), match=problem):
        state.remind(**asked_for)
    assert state.reminders == []

"""Reminders of keys: their ids, their times, and what a cut tells of them."""

import pytest

from sojourn.app.reminder import State
from sojourn.host.process.messages import Record
from sojourn.host.state.keyed_state import KeyedState
from sojourn.host.state.reminders import Reminders, reminder_key
from unit.host.spark_stand_in import Disk

S = 1_000_000
PARTITION = ("count@reminders@mark", 0)
ASKING = Record("lines/0/7", b"", key='["a"]', place="lines/0/7", message_key=b"k", room=9)


class Asked:
    """Reminders of an operator, by a clock that is told."""

    def __init__(self):
        self.state = KeyedState(Disk())
        self.reminders = Reminders(self.state, {"count": PARTITION[0]})
        self.reminders.restore({})

    def ask(self, *reminders, record=ASKING, now_s):
        for change in self.reminders.asked("count", record, reminders, now_s * S):
            self.state.change(*change)

    def due(self, now_s):
        found = []
        for change, record in self.reminders.due(now_s * S):
            self.state.change(*change)
            found.append(record)
        return found


@pytest.fixture
def asked():
    return Asked()


def test_a_reminder_is_a_record_of_the_key_and_the_root_of_what_comes_of_it(asked):
    asked.ask((2.0, "quiet"), now_s=10)
    assert asked.due(11) == []
    ((root, operator, record),) = [(r.root, r.operator, r.record) for r in asked.due(12)]
    assert (root, operator) == ((PARTITION, 12 * S), "count")
    assert (record.stream, record.key, record.written_s) == ("count@reminders", '["a"]', 12.0)
    assert record.root == f"{PARTITION[0]}/0/{12 * S}"
    assert (record.place, record.message_key, record.room) == ("lines/0/7", b"k", 9)
    assert reminder_key(record.payload) == '["a"]'
    assert asked.due(100) == []


def test_the_id_follows_from_the_record_that_asked_and_not_from_the_time(asked):
    asked.ask((1.0, "x"), (1.0, "x"), now_s=10)
    again = Asked()
    again.ask((1.0, "x"), (1.0, "x"), now_s=500)
    names = [record.record.name for record in asked.due(11)]
    assert names == [record.record.name for record in again.due(501)]
    assert len(set(names)) == 2


def test_a_cut_tells_up_to_when_all_were_called(asked):
    assert asked.reminders.floors() == {PARTITION: 0}
    asked.ask((5.0, ""), now_s=10)
    asked.due(20)
    assert asked.reminders.floors() == {PARTITION: 20 * S}


def test_nothing_is_asked_for_before_that_when_the_clock_is_set_back(asked):
    asked.due(100)
    asked.ask((1.0, ""), now_s=50)
    assert asked.due(60) == []
    (found,) = asked.due(101)
    assert found.root.offset == 101 * S


def test_nothing_is_due_before_it_is_known_what_is_pending():
    unknown = Reminders(KeyedState(Disk()), {"count": PARTITION[0]})
    assert list(unknown.due(10 * S)) == []
    assert unknown.floors() == {}


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

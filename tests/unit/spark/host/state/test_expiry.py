"""States that expire: seen as they are, looked at seldom, and removed without a trace."""

import pytest

from sojourn.spark.host.state.expiry import Expiry, unstamped
from sojourn.spark.host.state.keyed_state import KeyedState
from unit.spark.host.spark_stand_in import Disk

S = 1_000_000


class Kept:
    """The states of one operator, of which each expires ten seconds after its change."""

    def __init__(self, ttl_s=10):
        self.state = KeyedState(Disk())
        self.start(ttl_s)

    def start(self, ttl_s):
        self.expiry = Expiry(self.state, {} if ttl_s is None else {"count": ttl_s * S})
        self.expiry.restore()

    def set(self, key, state, now_s):
        self.apply(self.expiry.changes("count", key, state, now_s * S))

    def passes(self, now_s):
        self.apply(self.expiry.due(now_s * S))

    def apply(self, changes):
        for change in changes:
            self.state.change(*change)

    def of(self, key, now_s):
        return self.expiry.of("count", key, now_s * S)

    @property
    def pending(self):
        return self.state.ordered("count@expiry", "", "9", most=10_000)[0]


@pytest.fixture
def kept():
    return Kept()


def test_a_state_is_there_until_it_is_too_old_whenever_it_is_looked_at(kept):
    kept.set("a", b"1", now_s=0)
    assert (kept.of("a", 9), kept.of("a", 10)) == (b"1", b"")
    assert unstamped(kept.state.of("count", "a")) == b"1"
    kept.passes(10)
    assert (kept.state.of("count", "a"), kept.pending) == (b"", [])


def test_a_state_that_changes_stays_and_is_looked_at_once_for_many_changes(kept):
    for now_s in range(0, 30, 3):
        kept.set("a", str(now_s).encode(), now_s)
        kept.passes(now_s)
        assert len(kept.pending) == 1
        assert kept.of("a", now_s) == str(now_s).encode()
    kept.passes(36)
    assert kept.of("a", 36) == b"27"
    kept.passes(37)
    assert (kept.state.of("count", "a"), kept.pending) == (b"", [])


def test_nothing_is_left_of_a_state_that_a_function_has_removed(kept):
    kept.set("a", b"1", now_s=0)
    kept.set("a", b"", now_s=1)
    assert kept.pending == []
    kept.set("a", b"2", now_s=5)
    kept.passes(11)
    assert kept.of("a", 11) == b"2"
    kept.passes(15)
    assert (kept.state.of("count", "a"), kept.pending) == (b"", [])


def test_states_that_were_there_before_expire_once_they_have_changed(kept):
    kept.start(None)
    kept.set("a", b"1", now_s=0)
    kept.start(10)
    assert kept.of("a", 100) == b"1"
    kept.set("a", b"2", now_s=100)
    kept.passes(110)
    assert kept.of("a", 110) == b""


def test_without_a_time_to_live_all_stays(kept):
    kept.set("a", b"1", now_s=0)
    kept.start(None)
    kept.passes(100)
    assert kept.of("a", 100) == b"1"


def test_another_time_to_live_counts_from_the_last_change(kept):
    kept.set("a", b"1", now_s=0)
    kept.start(30)
    kept.passes(10)
    assert kept.of("a", 29) == b"1"
    kept.passes(30)
    assert (kept.state.of("count", "a"), kept.pending) == (b"", [])


def test_more_than_is_looked_at_together_is_looked_at_at_once_after(kept):
    for number in range(750):
        kept.set(f"k{number}", b"1", now_s=0)
    kept.passes(12)
    assert len(kept.pending) == 250
    assert kept.expiry.is_behind(12 * S)
    kept.passes(12)
    kept.passes(12)  # there is no other
    assert (kept.pending, kept.expiry.is_behind(12 * S)) == ([], False)

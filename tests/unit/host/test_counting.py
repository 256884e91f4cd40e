"""What a host counts: the hottest key, and bounds on what nobody asks for."""

import pytest

from sojourn.host import counting
from sojourn.host.counting import Counters, HostState
from sojourn.host.hot_key import HotKeyCounter
from sojourn.host.messages import Record
from sojourn.host.tracing import Trace


def record(key, **fields):
    return Record(0, "id", b"", "lines", key=key, **fields)


def test_the_hottest_key_is_told_as_a_part_of_those_with_a_key_in_the_interval():
    counters = Counters(since_s=0.0)
    for key in ["a", "b", "a", None, "a"]:
        counters.arrived(record(key))
    counters.arrived(record("a", everyone=True))
    assert counters.taken(1.0, HostState(), memory={}).hottest == 0.75
    assert counters.taken(2.0, HostState(), memory={}).hottest == 0.0


def test_a_hot_key_is_found_among_any_number_of_others():
    hot = HotKeyCounter()
    for number in range(100_000):
        hot.count("hot" if number % 5 == 0 else f"key-{number}")
    assert hot.part == pytest.approx(0.2, abs=0.003)


def test_even_keys_are_not_taken_for_a_hot_one():
    hot = HotKeyCounter()
    for number in range(100_000):
        hot.count(f"key-{number}")
    assert hot.part < 0.002


def test_traces_that_nobody_asks_for_are_bounded(monkeypatch):
    monkeypatch.setattr(counting, "_MOST_TRACES", 3)
    counters = Counters(since_s=0.0)
    for _ in range(5):
        counters.traced(Trace("r", "i", 0.0, 1.0, 1.0, 1, []))
    assert counters.untold == 2
    assert len(counters.taken(1.0, HostState(), memory={}).traces) == 3

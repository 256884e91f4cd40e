"""What a host counts: the hottest key, and bounds on what nobody asks for."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.host import counting
from sojourn.spark.host.counting import Counters, ErrorLog, HotKeyCounter
from sojourn.spark.wire.counters import BIN_S, OperatorState, Trace
from sojourn.spark.wire.record import Record


def record(key, **fields):
    return Record("id", b"", "lines", key=key, **fields)


def test_the_hottest_key_is_told_as_a_part_of_those_with_a_key_in_the_interval():
    counters = Counters("a", since_s=0.0)
    for key in ["a", "b", "a", None, "a"]:
        counters.arrived(record(key), 0.5, inner=False)
    counters.arrived(record("a", everyone=True), 0.5, inner=False)
    first, second = (counters.taken(at_s, OperatorState(), memory={}) for at_s in (1.0, 2.0))
    assert (first.hottest, first.hottest_name) == (0.75, "a")
    assert (second.hottest, second.hottest_name) == (0.0, "")


def test_only_what_comes_from_inside_the_part_is_counted_by_the_moment_it_came():
    """Of what comes from Kafka the broker tells when it was written."""
    counters = Counters("a", since_s=0.0)
    counters.arrived(record(None), 10 * BIN_S, inner=False)
    for at_s in (10.1, 10.9, 12.5):
        counters.arrived(record(None), at_s * BIN_S, inner=True)
    tally = counters.taken(1.0, OperatorState(), memory={})
    assert tally.arrivals == {10: 2, 12: 1}
    assert counters.taken(2.0, OperatorState(), memory={}).arrivals == {}


def test_sums_are_those_of_each_processor_and_begin_anew():
    counters = Counters("a", since_s=0.0)
    for processor, took_s in ((1, 0.1), (1, 0.3), (2, 0.5)):
        counters.processor(processor).count(
            service_s=took_s, wait_s=2 * took_s, cpu_s=took_s / 2
        )
    counters.transferred(0.01)
    counters.transferred(0.03)
    first = counters.taken(1.0, OperatorState(running=2), memory={1: 7})
    told = {each.processor: each for each in first.processors}
    assert (told["a-1"].served, told["a-1"].memory_bytes) == (2, 7)
    assert told["a-1"].service_s == pytest.approx(0.4)
    assert told["a-1"].service_ss == pytest.approx(0.1)
    assert told["a-1"].longest_service_s == 0.3
    assert told["a-1"].wait_s == pytest.approx(0.8)
    assert told["a-2"].served == 1
    assert first.transfers == (2, pytest.approx(0.04))
    again = counters.taken(2.0, OperatorState(), memory={1: 7})
    assert (again.since_s, again.transfers) == (1.0, (0, 0.0))
    assert [(each.served, each.longest_service_s) for each in again.processors] == [(0, 0.0)]
    assert told["a-1"].served == 2  # a report that was taken stays as it was


def test_a_hot_key_is_found_among_any_number_of_others():
    hot = HotKeyCounter()
    for number in range(100_000):
        hot.count("hot" if number % 5 == 0 else f"key-{number}")
    assert hot.part == pytest.approx(0.2, abs=0.003)


@given(
    keys=st.lists(st.integers(0, 12) | st.integers(0, 1000), max_size=400),
    most=st.integers(1, 20),
)
def test_no_key_is_counted_more_than_it_came_and_none_much_less(keys, most):
    """The bound of Misra and Gries; a plan may rely on what is told as too little."""
    hot, exact = HotKeyCounter(most=most), Counter(map(str, keys))
    for key in keys:
        hot.count(str(key))
    told = hot.part * len(keys)
    most_often = max(exact.values(), default=0)
    assert most_often - len(keys) / (most + 1) - 1e-9 <= told <= most_often
    assert told <= exact[hot.key] or not hot.key


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("x" * 1000, "x" * 59 + "…"),
        ('["the"]', "'the'"),
        ('["de",5]', '["de",5]'),
        ("[5]", "[5]"),
        ('["\\ud800', '["\\ud800'),
    ],
)
def test_the_hottest_key_is_shown_as_it_is_read_best(key, shown):
    hot = HotKeyCounter()
    hot.count(key)
    assert hot.key == shown


def test_even_keys_are_not_taken_for_a_hot_one():
    hot = HotKeyCounter()
    for number in range(100_000):
        hot.count(f"key-{number}")
    assert hot.part < 0.002


def test_traces_that_nobody_asks_for_are_bounded(monkeypatch):
    monkeypatch.setattr(counting, "_MOST_TRACES", 3)
    counters = Counters("a", since_s=0.0)
    for _ in range(5):
        counters.traced(Trace("r", "i", 0.0, 1.0, 1.0, 1, []))
    assert counters.untold == 2
    assert len(counters.taken(1.0, OperatorState(), memory={}).traces) == 3


def test_kinds_of_errors_are_bounded():
    log = ErrorLog(most_kinds=2)
    told = [log.seen(f"ValueError: {n}", "", "") for n in range(5)]
    assert told == ["ValueError: 0", "ValueError: 1", "", "", ""]
    assert log.repeated(0.0) == []
    assert log.repeated(61.0) == ["3 errors of other kinds"]
    assert log.repeated(200.0) == []

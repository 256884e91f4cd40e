"""Measurements of a node: no byte is counted twice or lost, and clocks are known as in NTP."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.host.node_measures import ClockOffset, Exchange, Traffic
from sojourn.spark.wire.agent import ClockIs
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record

STREAMS = st.sampled_from(["a", "b", "c"])
RECORDS = st.builds(lambda s, n: Record("x/0/1", bytes(n), s), STREAMS, st.integers(0, 9))
OUTPUTS = st.builds(lambda s, n: OutputRecord(s, bytes(n)), STREAMS, st.integers(0, 9))
SIZES = st.integers(1, 10_000)


@given(st.lists(st.tuples(st.lists(RECORDS, min_size=1, max_size=5), SIZES)))
def test_every_byte_to_a_node_counts_once(frames):
    traffic = Traffic()
    for records, size_bytes in frames:
        traffic.gave(records, size_bytes)
    assert sum(traffic.to.values()) == sum(size_bytes for _, size_bytes in frames)
    assert traffic.to.keys() == {record.stream for records, _ in frames for record in records}
    assert not traffic.back


@given(st.lists(st.tuples(st.lists(st.builds(Result, st.lists(OUTPUTS))), SIZES)))
def test_every_byte_back_counts_once(frames):
    traffic = Traffic()
    for results, size_bytes in frames:
        traffic.got(results, size_bytes)
    assert sum(traffic.back.values()) == sum(size_bytes for _, size_bytes in frames)
    assert not traffic.to


def test_streams_that_share_a_frame_have_their_shares():
    traffic = Traffic()
    traffic.gave([Record("1", bytes(899), "big"), Record("2", bytes(99), "small")], 2000)
    assert traffic.to == {"big": 1800, "small": 200}


def test_a_rate_is_that_of_the_last_seconds():
    traffic = Traffic()
    assert traffic.per_s == (0.0, 0.0)
    for second in range(100):
        traffic.mark(float(second))
        if second < 97:
            traffic.gave([Record("1", b"", "a")], 500)
    assert traffic.per_s == (3 * 500 / 5, 0.0)


# -- clocks ----------------------------------------------------------------------------------


def exchange(at_s, *, offset_s, there_s=0.001, back_s=0.001, ours=0.0, theirs=0.0):
    """Return a question of *at_s* by the true time; clocks are set by so much on the way."""
    heard_s = at_s + there_s
    told_s = heard_s + 0.0005
    told = ClockIs(at_s, heard_s + offset_s, told_s + offset_s + theirs)
    return Exchange(told, came_s=told_s + back_s + ours)


def clock_of(*exchanges):
    clock = ClockOffset()
    for each in exchanges:
        clock.seen(each)
    return clock


def test_nothing_is_known_before_the_first_answer():
    assert clock_of().best is None


@pytest.mark.parametrize("offset_s", [0.0, 3600.0, -0.02])
def test_if_both_ways_take_the_same_time_it_is_exact(offset_s):
    best = clock_of(exchange(100.0, offset_s=offset_s, there_s=0.2, back_s=0.2)).best
    assert best.offset_s == pytest.approx(offset_s)
    assert best.round_trip_s == pytest.approx(0.4)


def test_it_is_never_wrong_by_more_than_half_the_round_trip():
    """However long either way takes: a busy machine, a full connection."""
    chance, clock = Random(1), ClockOffset()
    for second in range(1000):
        there_s, back_s = chance.expovariate(100), chance.expovariate(2)
        clock.seen(exchange(float(second), offset_s=-7.0, there_s=there_s, back_s=back_s))
        assert abs(clock.best.offset_s + 7.0) <= clock.best.round_trip_s / 2 + 1e-9


def test_the_exchange_that_met_nobody_counts():
    slow = [exchange(float(s), offset_s=5.0, there_s=0.001, back_s=0.8) for s in range(3)]
    quick = exchange(3.0, offset_s=5.0)
    for clock in (clock_of(*slow, quick), clock_of(quick, *slow)):
        assert clock.best.offset_s == pytest.approx(5.0)
        assert clock.best.round_trip_s == pytest.approx(0.002)


def test_what_is_long_ago_does_not_count():
    """A way that has become longer is known as such, and a clock drifts."""
    quick = exchange(0.0, offset_s=5.0)
    clock = clock_of(quick, *(exchange(float(s), offset_s=5.0, back_s=0.1) for s in range(8)))
    assert clock.best.round_trip_s == pytest.approx(0.101)


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0, 0.5, -0.01])
def test_after_a_clock_was_set_the_first_answer_tells_it(jump_s):
    before = [exchange(float(s), offset_s=1.0) for s in range(8)]
    slower = exchange(9.0, offset_s=1.0 + jump_s, there_s=0.002, back_s=0.002)
    assert clock_of(*before, slower).best.offset_s == pytest.approx(1.0 + jump_s)


@pytest.mark.parametrize(
    "jumps", [{"ours": 60.0}, {"ours": -60.0}, {"theirs": 60.0}, {"theirs": -60.0}]
)
def test_a_clock_that_is_set_during_an_exchange_spoils_no_other(jumps):
    """The next answer is right, whichever clock was set, and in which direction."""
    offset_s = 1.0 + jumps.get("theirs", 0.0) - jumps.get("ours", 0.0)
    clock = clock_of(exchange(0.0, offset_s=1.0), exchange(1.0, offset_s=1.0, **jumps))
    assert abs(clock.best.offset_s - 1.0) < 0.001
    clock.seen(exchange(2.0, offset_s=offset_s))
    assert clock.best.offset_s == pytest.approx(offset_s)

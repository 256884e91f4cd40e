"""The clock of a part counts time that has passed, whatever becomes of the wall clock."""

import time
from inspect import signature

import pytest

from sojourn.spark.host.state.part_clock import ClockReading, PartClock
from unit.spark.host.word_count import WordCountHost

S = 1_000_000
HOUR_S, YEAR_S = 3600.0, 365 * 86_400.0


class Machine:
    """A machine with two clocks, of which one can be wrong."""

    def __init__(self, wall_s, running_s=50.0):
        self.wall_s, self.running_s = wall_s, running_s
        self.clock = PartClock(lambda: self.wall_s, lambda: self.running_s)

    def passes(self, s):
        self.wall_s += s
        self.running_s += s

    @property
    def now_s(self):
        return self.clock.now_s()


def test_it_begins_with_the_wall_clock_and_then_runs_without_it():
    machine = Machine(1000.0)
    machine.clock.restore(None)
    machine.wall_s += YEAR_S
    machine.passes(5.0)
    assert machine.now_s == 1005.0
    assert machine.clock.on_wall_s(1004 * S) == 1004.0 + YEAR_S


def test_the_next_host_adds_the_time_in_which_none_ran():
    before = Machine(1000.0)
    before.passes(5.0)
    after = Machine(1605.0, running_s=3.0)
    after.clock.restore(before.clock.reading())
    assert after.now_s == 1605.0


def test_what_was_wrong_while_a_host_ran_is_not_inherited():
    before = Machine(1000.0)
    before.wall_s += YEAR_S  # and stays so
    reading = before.clock.reading()
    after = Machine(1000.0 + YEAR_S + 20.0)
    after.clock.restore(reading)
    assert after.now_s == 1020.0


@pytest.mark.parametrize("off_s", [10 * YEAR_S, -10 * YEAR_S])
def test_a_wall_clock_that_is_set_a_moment_after_the_start_changes_nothing(off_s):
    """As that of a machine whose clock is wrong until NTP has answered."""
    after = Machine(1100.0 + off_s)
    after.clock.restore(ClockReading(1000 * S, 1000 * S))
    after.passes(30.0)
    assert after.now_s == 1030.0
    after.wall_s -= off_s
    after.passes(30.0)
    assert after.now_s == 1160.0
    after.wall_s += off_s
    assert after.now_s == 1160.0


def test_a_long_absence_counts_a_minute_later():
    after = Machine(1000.0 + 10 * HOUR_S)
    after.clock.restore(ClockReading(1000 * S, 1000 * S))
    after.passes(59.0)
    assert after.now_s == 1059.0
    after.passes(1.0)
    assert after.now_s == 1060.0 + 10 * HOUR_S


def test_a_cut_that_is_made_meanwhile_begins_where_the_absence_did():
    last = ClockReading(1000 * S, 1000 * S)
    after = Machine(1000.0 + 10 * HOUR_S)
    after.clock.restore(last)
    after.passes(30.0)
    assert after.clock.reading() == last
    after.passes(30.0)
    assert after.clock.reading().part_us == after.clock.now_us()


def test_a_wall_clock_that_stays_behind_the_last_cut_counts_no_absence():
    after = Machine(900.0)
    after.clock.restore(ClockReading(1000 * S, 1000 * S))
    after.passes(100.0)
    assert after.now_s == 1100.0


def test_an_absence_that_was_believed_is_not_taken_back_by_the_host_that_follows(tmp_path):
    """Reminders of that time would come late by as much, also where no cut was made since."""
    for attempt, wall_s, expected_s in (
        (1, 1000.0, 1060.0),
        (2, 1000.0 + YEAR_S, 1060.0 + YEAR_S),
        (3, 1300.0, 1120.0 + YEAR_S),
    ):
        machine = Machine(wall_s)
        host = WordCountHost(tmp_path / "part", clock=machine.clock)
        host.relay_comes(1, batch=0, attempt=attempt)
        machine.passes(60.0)
        assert machine.now_s == expected_s
        host.take(1, ["a"])
        host.files.close()


def test_by_default_the_clocks_are_those_of_the_machine():
    assert PartClock().now_us() == pytest.approx(PartClock().reading().wall_us, abs=60 * S)


def test_by_default_it_runs_with_the_machine_and_not_with_the_wall_clock():
    """No test can set the wall clock of a machine, so this one reads which clock it is."""
    running = signature(PartClock).parameters["running"].default
    booted_s = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    assert running() == pytest.approx(booted_s, abs=60.0)

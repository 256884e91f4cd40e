import pytest

from sojourn.act.policy.flink import Flink
from sojourn.errors import BadInput
from unit.act.policy.turns import CHAIN, ONE, Turns

READY_S = 300 + 900
"""Stabilisation and metric window: nothing is done earlier after a change."""


def one(allocation, *, every_s=60, keep=240, pause_s=0.0, most=None, **settings):
    flink = Flink(most=most, **settings)
    return Turns(flink, ONE, {"a": allocation}, every_s=every_s, keep=keep, pause_s=pause_s)


def prompt(allocation, **settings):
    """Return turns in which each is judged by itself, and fewer need not wait."""
    unhurried = {"stabilisation_s": 0.0, "window_s": 60.0, "scale_down_s": 0.0}
    return one(allocation, **(unhurried | settings))


# -- how many ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per_s", "after"),
    [
        (9.9, 10),  # 0.99 of capacity: 16 would be right, but it is within bounds
        (10.1, 17),  # 10.1 / 0.7 + 10.1 · 5 / 30 = 16.1
        (3.8, 10),  # 1 / (1 / 0.4 + 5 / 30) = 0.375 of capacity is the lower bound
        (3.7, 6),  # 3.7 / 0.7 + 3.7 · 5 / 30 = 5.9
    ],
)
def test_without_lag_it_acts_only_beyond_all_and_below_three_eighths_of_capacity(per_s, after):
    assert prompt(10).turn(per_s).after.allocation == {"a": after}


def test_what_would_be_right_is_recommended_within_bounds_too():
    decision = prompt(10).turn(9.9)
    assert decision.wish.wanted == {"a": 16}
    assert decision.reason == "utilisation a 0.99, within bounds: keeping 10"


def test_lag_is_to_be_worked_off_in_half_an_hour():
    # 9000 records in 1800 s are 5 per second, beside 6 per second that arrive
    decision = prompt(10).turn(6.0, backlog={"a": 9000})
    assert decision.after.allocation == {"a": 15}  # 5 + 6 / 0.7 + 6 · 5 / 30 = 14.6
    assert prompt(10).turn(6.0, backlog={"a": 7000}).kind == "hold"  # 3.9 + 6 < 10


def test_lag_in_front_of_one_operator_is_work_for_those_behind_it():
    turns = Turns(
        Flink(stabilisation_s=0, window_s=60),
        CHAIN,
        {"a": 10, "b": 10},
        every_s=60,
    )
    assert turns.turn(6.0, backlog={"a": 9000}).after.allocation == {"a": 15, "b": 15}


def test_with_no_catch_up_time_lag_does_not_count():
    # 10.9 / 0.7 = 15.6 alone: what a restart leaves behind is caught up with in that time too
    assert prompt(10, catch_up_s=0.0).turn(10.9, backlog={"a": 10**6}).after.allocation == {
        "a": 16
    }


def test_with_more_than_five_minutes_of_lag_nothing_is_taken():
    assert prompt(10).turn(1.0, backlog={"a": 200}).after.allocation == {"a": 4}
    assert prompt(10).turn(1.0, backlog={"a": 400}).kind == "hold"


def test_once_one_operator_is_out_of_bounds_all_get_what_is_right():
    turns = Turns(
        Flink(stabilisation_s=0, window_s=60),
        CHAIN,
        {"a": 10, "b": 12},
        every_s=60,
    )
    assert turns.turn(9.5).kind == "hold"
    assert turns.turn(10.5).after.allocation == {"a": 17, "b": 17}


def test_an_operator_loses_three_fifths_at_most():
    assert prompt(10).turn(0.1).after.allocation == {"a": 4}
    assert prompt(10).turn(0.0).after.allocation == {"a": 4}
    assert prompt(10, most_down=1.0).turn(0.1).after.allocation == {"a": 1}


def test_an_operator_has_200_at_most_but_those_that_it_has_stay():
    assert prompt(150).turn(300.0).after.allocation == {"a": 200}
    assert prompt(250).turn(300.0).kind == "hold"
    assert prompt(10, most_up=1.0).turn(300.0).after.allocation == {"a": 20}


def test_no_more_than_there_may_be_are_given():
    decision = prompt(10, most=12).turn(30.0)
    assert decision.after.allocation == {"a": 12}
    assert decision.wish.wanted == {"a": 48}


def test_capacity_is_what_is_served_in_a_lag_if_that_is_plainly_less():
    lagging = {"backlog": {"a": 400}, "served_per_s": {"a": 5.0}}  # 80 s of it
    turns = prompt(10, window_s=120.0)
    assert turns.turn(6.0, **lagging).kind == "hold"
    # 2 s each instead of 1 s: 2 · (400 / 1800 + 6 / 0.7 + 6 · 5 / 30) = 19.6
    assert turns.turn(6.0, **lagging).after.allocation == {"a": 20}


# -- when -------------------------------------------------------------------------------------


def test_nothing_is_told_before_it_has_settled_and_the_window_is_full():
    turns = one(10)
    decision = turns.turn(20.0)
    assert decision.wish.wanted == {"a": 32}
    assert "no decision before 1200 s" in decision.reason
    assert turns.until(READY_S, 20.0).after.allocation == {"a": 32}
    assert turns.until(2 * READY_S, 40.0).after.allocation == {"a": 64}


def test_the_pause_of_a_change_comes_before_settling():
    turns = one(10, pause_s=60.0)
    assert turns.until(READY_S, 20.0).kind == "up"
    assert turns.until(2 * READY_S + 60, 40.0).kind == "up"


def test_the_average_of_the_window_counts():
    turns = one(10)
    assert turns.until(900, 9.0).kind == "hold"
    # from 300 s to 1200 s: 10 minutes at 9 and 5 at 12.2 per second are 10.07 on average
    assert turns.until(READY_S, 12.2).after.allocation == {"a": 17}


def test_what_came_before_the_change_had_settled_does_not_count():
    turns = one(10)
    assert turns.until(300, 1000.0).kind == "hold"
    assert turns.until(READY_S, 9.9).kind == "hold"


def test_fewer_must_have_been_right_for_an_hour():
    turns = one(10)
    assert turns.until(READY_S + 3600, 2.0).after.allocation == {"a": 4}


def test_of_an_hour_the_most_that_was_right_is_what_remains():
    turns = prompt(10, scale_down_s=3600.0)
    assert turns.until(1800, 2.0).kind == "hold"
    assert turns.turn(3.0).wish.wanted == {"a": 5}
    assert turns.until(3660, 2.0).after.allocation == {"a": 5}


def test_the_hour_begins_anew_when_fewer_are_not_right():
    turns = prompt(10, scale_down_s=3600.0)
    assert turns.until(1800, 2.0).kind == "hold"
    assert turns.turn(6.2).wish.wanted == {"a": 10}
    assert turns.until(1860 + 60 + 3600, 2.0).after.allocation == {"a": 4}


def test_what_was_once_within_bounds_in_the_hour_stays():
    turns = prompt(10, scale_down_s=3600.0)
    assert turns.until(1800, 2.0).kind == "hold"
    assert turns.turn(5.0).wish.wanted == {"a": 8}  # half of capacity is within bounds
    held = turns.until(3660, 2.0)
    assert held.kind == "hold"
    assert held.reason.endswith("within bounds: keeping 10")
    assert turns.until(1860 + 3660, 2.0).after.allocation == {"a": 4}


def test_fewer_that_must_wait_are_told():
    decision = prompt(10, scale_down_s=3600.0).turn(2.0)
    assert decision.wish.wanted == {"a": 4}
    assert decision.reason.endswith("within bounds: keeping 10; scaling down a is delayed")


def test_a_memory_shorter_than_the_hour_does_not_shorten_it_nor_stop_it():
    turns = one(10, keep=5)
    assert turns.until(READY_S + 3600, 2.0).after.allocation == {"a": 4}


def test_intervals_of_which_nothing_is_known_do_not_break_the_hour():
    turns = prompt(10, scale_down_s=3600.0)
    assert turns.until(1800, 2.0).kind == "hold"
    assert turns.unusable("nobody answered").kind == "hold"
    assert turns.until(3660, 2.0).after.allocation == {"a": 4}


# -- what a restart takes ---------------------------------------------------------------------


def test_a_restart_takes_five_minutes_unless_measured_ones_are_tracked():
    for tracked, after in ((False, 17), (True, 16)):
        turns = prompt(4, pause_s=6.0, track_restarts=tracked)
        assert turns.turn(6.0).after.allocation == {"a": 10}
        # 10.6 / 0.7 = 15.1, and 10.6 · 300 / 1800 = 1.8 or 10.6 · 6 / 1800 = 0.04
        assert turns.until(180, 10.6).after.allocation == {"a": after}


# -- what is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"utilisation": 0.0},
        {"utilisation": 1.2},
        {"boundary": -0.1},
        {"catch_up_s": float("nan")},
        {"window_s": -1.0},
        {"most_down": 1.5},
        {"scale_down_s": float("inf")},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(BadInput, match=next(iter(wrong))):
        Flink(**wrong)


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(BadInput, match="from 5 to 4 processors"):
        Flink(fewest=5, largest=4)

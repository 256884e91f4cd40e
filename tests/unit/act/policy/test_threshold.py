import pytest

from sojourn.act.policy.threshold import Threshold
from sojourn.errors import BadInput
from unit.act.policy.turns import CHAIN, ONE, Turns


def one(allocation, *, every_s=30, keep=240, **settings):
    return Turns(Threshold(**settings), ONE, {"a": allocation}, every_s=every_s, keep=keep)


def test_processors_are_wanted_in_proportion_to_how_busy_they_are():
    # 10 · 0.9 / 0.7 = 12.86
    decision = one(10).turn(9.0)
    assert decision.after.allocation == {"a": 13}
    assert decision.reason == "utilisation a 0.9, target 0.7: 13"


def test_near_the_target_nothing_is_wanted():
    assert one(100).turn(76.0).wish.wanted == {"a": 100}
    assert one(100).turn(64.0).wish.wanted == {"a": 100}
    assert one(100).turn(78.0).after.allocation == {"a": 112}
    assert one(100).turn(62.0).wish.wanted == {"a": 89}


@pytest.mark.parametrize("per_s", [8.0, 80.0, 8000.0])
def test_how_much_is_missing_is_not_seen(per_s):
    assert one(7).turn(per_s).after.allocation == {"a": 10}


def test_a_record_that_took_long_does_not_make_it_more_than_busy():
    assert one(7).turn(7.0, busy={"a": 1.9}).after.allocation == {"a": 10}


def test_an_overload_is_climbed_in_steps():
    # 20 / 0.7 would be 29 processors; 26 are 0.77 of the time busy, which is near enough
    turns = one(2)
    after = [turns.turn(20.0).after.allocation["a"] for _ in range(7)]
    assert after == [3, 5, 8, 12, 18, 26, 26]


def test_backlogs_are_not_seen():
    decision = one(10).turn(7.0, backlog={"a": 10**6})
    assert decision.reason.endswith("keeping 10")


def test_of_what_was_wanted_in_five_minutes_the_most_is_kept():
    turns = one(10)
    assert turns.until(300, 7.0).kind == "hold"
    assert turns.turn(5.0).wish.wanted == {"a": 8}  # at 330 s
    held = [turns.turn(2.0) for _ in range(9)]  # until 600 s
    assert {decision.kind for decision in held} == {"hold"}
    assert held[-1].wish.wanted == {"a": 3}
    assert held[-1].reason.endswith(
        "3, but the highest recommendation of the last 300 s is kept"
    )
    assert turns.turn(2.0).after.allocation == {"a": 8}  # of 330 s
    assert turns.turn(2.0).after.allocation == {"a": 3}


def test_what_was_started_with_counts_as_wanted():
    turns = one(10)
    assert turns.until(300, 2.0).after.allocation == {"a": 3}


def test_a_memory_shorter_than_that_is_used_as_it_is():
    turns = one(10, keep=3)
    assert turns.until(120, 2.0).after.allocation == {"a": 3}


def test_a_high_wish_of_the_past_is_no_reason_to_grow():
    turns = one(10, most=10)
    assert turns.turn(9.5).wish.wanted == {"a": 14}
    assert turns.turn(7.0).after.allocation == {"a": 10}


def test_growth_is_limited_to_twice_or_four_more_in_a_period():
    assert one(10, utilisation=0.1).turn(20.0).after.allocation == {"a": 20}
    assert one(1, utilisation=0.1).turn(20.0).after.allocation == {"a": 5}


def test_the_limit_is_for_the_period_and_not_for_the_turn():
    turns = one(10, utilisation=0.1, every_s=6)
    assert turns.turn(99.0).after.allocation == {"a": 20}
    held = turns.turn(99.0)
    assert held.kind == "hold"
    assert held.reason.endswith("200, but scale-up is limited within 15 s")
    assert turns.turn(99.0).kind == "hold"
    assert turns.turn(99.0).after.allocation == {"a": 40}


def test_operators_are_scaled_one_by_one():
    turns = Turns(Threshold(), CHAIN, {"a": 10, "b": 10}, every_s=60)
    assert turns.turn(8.5, busy={"b": 0.7}).after.allocation == {"a": 13, "b": 10}


def test_an_operator_that_was_never_timed_stays():
    decision = one(10).turn(9.0, busy={"a": None}, samples={"a": 0})
    assert decision.wish.wanted == {"a": 10}
    assert decision.reason == "utilisation unknown, target 0.7: keeping 10"


def test_an_operator_that_got_nothing_is_idle():
    assert one(10).turn(0.0, busy={"a": None}).wish.wanted == {"a": 1}


def test_few_samples_are_taken_together_with_older_ones():
    turns = one(10)
    few = {"samples": {"a": 10}}
    assert {decision.kind for decision in turns.turns(9, 7.0, **few)} == {"hold"}
    # the few that were timed happened to take 1.9 s; with the 90 before them it is 1.09 s
    longer = {"service_s": {"a": 1.9}, "served_per_s": {"a": 7.0}}
    assert turns.turn(7.0, **longer, **few).kind == "hold"
    assert turns.turn(9.0, busy={"a": None}, samples={"a": 0}).after.allocation == {"a": 15}


def test_no_more_than_there_may_be_are_given():
    decision = one(7, most=8).turn(9.0)
    assert decision.after.allocation == {"a": 8}
    assert decision.wish.wanted == {"a": 10}


@pytest.mark.parametrize(
    "wrong",
    [
        {"utilisation": 0.0},
        {"utilisation": 1.1},
        {"tolerance": -0.1},
        {"down_s": float("nan")},
        {"up_period_s": -1.0},
        {"up_by": -1},
        {"up_times": 0.5},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(BadInput, match=next(iter(wrong))):
        Threshold(**wrong)

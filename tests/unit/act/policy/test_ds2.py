import pytest

from sojourn.act.policy.ds2 import Ds2
from sojourn.errors import BadInput
from sojourn.topology import Arrival, Operator, Topology
from unit.act.policy.turns import CHAIN, ONE, Turns

LOOP = Topology(
    name="loop",
    arrivals=(Arrival(name="in", per_s=1, into="a"),),
    operators=(
        Operator(name="a", service_s=1.0, emits={"b": 1}),
        Operator(name="b", service_s=0.5, emits={"a": 0.5}),
    ),
)


def warm(policy, topology, allocation, *, per_s=1.0):
    """Return turns of which the first, which is not used, is over."""
    turns = Turns(policy, topology, allocation, every_s=10)
    assert turns.turn(per_s).kind == "hold"
    return turns


def test_each_operator_gets_what_its_rate_takes_at_the_true_rate_of_a_processor():
    # 10/s at 0.999 s and 20/s at 0.26 s
    turns = warm(Ds2(), CHAIN, {"a": 2, "b": 2})
    decision = turns.turn(10.0, service_s={"a": 0.999, "b": 0.26})
    assert decision.after.allocation == {"a": 10, "b": 6}
    assert decision.wish.offered == pytest.approx({"a": 9.99, "b": 5.2})
    assert decision.reason == "the measured rates need a 9.99, b 5.2 processors: 10:6"


def test_an_operator_that_starves_behind_a_slow_one_is_sized_for_what_will_come():
    turns = warm(Ds2(), CHAIN, {"a": 2, "b": 2})
    # a serves 2 of 9.5 per second, so b gets 4 per second instead of 19
    decision = turns.turn(9.5)
    assert turns.knowledge.observations[-1].operators["b"].arrivals_per_s == 4.0
    assert decision.after.allocation == {"a": 10, "b": 10}


def test_the_scaling_factor_adds_a_part():
    assert warm(Ds2(scaling_factor=0.5), ONE, {"a": 1}).turn(4.1).after.allocation == {"a": 7}


def test_loops_are_solved():
    # a: 4.2 + 0.5 · b, so twice as much as enters reaches both
    decision = warm(Ds2(), LOOP, {"a": 1, "b": 1}).turn(4.2)
    assert decision.after.allocation == {"a": 9, "b": 5}


def test_the_first_observation_after_the_start_and_after_a_change_is_not_used():
    turns = Turns(Ds2(), ONE, {"a": 1}, every_s=10)
    kinds = [turns.turn(per_s).kind for per_s in (4.5, 4.5, 7.5, 7.5)]
    assert kinds == ["hold", "up", "hold", "up"]


def test_what_is_not_used_is_recommended_all_the_same():
    decision = Turns(Ds2(), ONE, {"a": 1}, every_s=10).turn(4.5)
    assert decision.wish.wanted == {"a": 5}
    assert (
        "observation 1 since the last change, and the policy acts from number 2 on"
        in decision.reason
    )


def test_without_warm_up_it_acts_at_once():
    assert Turns(Ds2(warm_up=0), ONE, {"a": 1}, every_s=10).turn(4.5).after.allocation == {
        "a": 5
    }


def test_activation_counts_evaluations_after_the_warm_up_and_takes_the_last():
    turns = Turns(Ds2(warm_up=2, activation=3), ONE, {"a": 1}, every_s=10)
    kinds = [decision.kind for decision in turns.turns(4, 4.5)]
    assert kinds == ["hold"] * 4
    assert turns.turn(6.5).after.allocation == {"a": 7}


def test_observations_that_cannot_be_used_do_not_count():
    turns = Turns(Ds2(), ONE, {"a": 1}, every_s=10)
    assert [turns.unusable("gone").kind for _ in range(3)] == ["hold"] * 3
    assert turns.turn(4.5).kind == "hold"
    assert turns.turn(4.5).kind == "up"


def test_a_short_memory_does_not_hold_it_back_for_ever():
    turns = Turns(Ds2(warm_up=9), ONE, {"a": 1}, every_s=10, keep=3)
    assert [decision.kind for decision in turns.turns(4, 4.5)] == ["hold"] * 3 + ["up"]


def test_one_processor_less_is_no_reason_by_itself():
    turns = warm(Ds2(), CHAIN, {"a": 5, "b": 5})
    assert turns.turn(3.5).wish.wanted == {"a": 4, "b": 4}
    assert turns.turn(3.5).kind == "hold"
    assert turns.turn(2.5).after.allocation == {"a": 3, "b": 3}


def test_one_processor_less_goes_along_with_others():
    turns = warm(Ds2(), CHAIN, {"a": 5, "b": 5})
    assert turns.turn(3.5, service_s={"b": 1.0}).after.allocation == {"a": 4, "b": 7}


def test_backlogs_are_not_seen():
    turns = warm(Ds2(), ONE, {"a": 5})
    assert turns.turn(4.5, backlog={"a": 10**6}).reason.endswith("keeping 5")


def test_nothing_arriving_takes_the_least_there_may_be():
    assert warm(Ds2(), CHAIN, {"a": 5, "b": 5}).turn(0.0).after.allocation == {"a": 1, "b": 1}


def test_where_rates_are_met_but_not_completed_all_grow_by_the_ratio():
    turns = warm(Ds2(target_rate_ratio=1.2), CHAIN, {"a": 5, "b": 5})
    assert turns.turn(4.5, completed_per_s=3.9).kind == "hold"  # 1.15 times
    decision = turns.turn(4.5, completed_per_s=3.0)
    assert decision.after.allocation == {"a": 8, "b": 8}
    assert "arrivals are 1.5 times completions" in decision.reason


def test_the_ratio_does_not_count_while_something_grows_anyway_nor_by_default():
    turns = warm(Ds2(target_rate_ratio=1.2), CHAIN, {"a": 5, "b": 4})
    assert turns.turn(4.5, completed_per_s=1.0).after.allocation == {"a": 5, "b": 5}
    turns = warm(Ds2(), CHAIN, {"a": 5, "b": 5})
    assert turns.turn(4.5, completed_per_s=0.1).kind == "hold"
    turns = warm(Ds2(target_rate_ratio=1.2), CHAIN, {"a": 5, "b": 5})
    assert turns.turn(4.5, completed_per_s=0.0).kind == "hold"


def test_no_more_than_there_may_be_are_shared_out():
    decision = warm(Ds2(most=6), CHAIN, {"a": 1, "b": 1}).turn(8.5)
    assert decision.after.allocation == {"a": 3, "b": 3}
    assert decision.wish.wanted == {"a": 9, "b": 9}
    assert decision.reason.endswith("3:3, limited to 6 processors")


@pytest.mark.parametrize(
    "wrong",
    [
        {"scaling_factor": -0.1},
        {"scaling_factor": float("nan")},
        {"warm_up": -1},
        {"activation": 0},
        {"target_rate_ratio": 0.9},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(BadInput, match=next(iter(wrong))):
        Ds2(**wrong)

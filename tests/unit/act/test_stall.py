"""Where nothing is done and processors are idle, no policy adds any."""

from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.act.policy import names, policy
from sojourn.act.stall import stalled, unless_stalled
from sojourn.knowledge import Wish
from unit.act.policy.turns import CHAIN, Turns, seen

START = {"a": 2, "b": 2}
# Records come, and none reaches an operator.
NOTHING = {
    "served_per_s": {"a": 0.0, "b": 0.0},
    "at_work": {"a": 0, "b": 0},
    "completed_per_s": 0.0,
}


def turns(decides, allocation=START):
    return Turns(decides, CHAIN, allocation, every_s=10)


def wants(**processors):
    return lambda knowledge: Wish(
        allocation={**knowledge.allocation, **processors},
        reason=f"a test: {':'.join(map(str, {**knowledge.allocation, **processors}.values()))}",
        wanted=processors,
    )


def test_in_the_first_seconds_the_reason_is_the_start():
    look = seen(CHAIN, START, at_s=10, lasted_s=10, per_s=20.0, backlog={"a": 200}, **NOTHING)
    running = turns(policy("drs", target=sj.Target("mean", 5.0)))
    known = running.knowledge.saw(replace(look, warming=True))
    wish = running.policy(known)
    assert unless_stalled(wish, known) is wish


@pytest.mark.parametrize("name", names())
def test_whatever_the_policy_processors_stay_while_nothing_is_done_by_idle_ones(name):
    """They would be idle, too, and the next start would begin with them."""
    running = turns(policy(name, target=sj.Target("mean", 5.0), most=30))
    for lasts in range(1, 7):
        decision = running.turn(20.0, backlog={"a": 200 * lasts, "b": 400 * lasts}, **NOTHING)
        assert decision.kind == "hold", decision.reason
        assert "no record was processed at a, b although records wait" in decision.reason
    assert running.knowledge.allocation == START


def test_the_reason_names_the_operators():
    decision = turns(wants(a=9, b=9)).turn(20.0, backlog={"a": 200, "b": 400}, **NOTHING)
    assert decision.reason == (
        "no record was processed at a, b although records wait, and their processors are idle; "
        "more processors would not help"
    )
    assert (decision.wish.wanted, decision.expected) == (None, None)


def test_once_records_are_done_processors_are_added_for_those_that_wait():
    running = turns(policy("drs", target=sj.Target("mean", 5.0), most=60))
    running.turns(3, 20.0, backlog={"a": 200, "b": 400}, **NOTHING)
    assert running.turn(20.0, backlog={"a": 600, "b": 0}).kind == "up"


def test_a_record_that_takes_longer_than_a_turn_is_no_stall():
    """Nothing is done, but processors are at work: more of them help."""
    busy = {**NOTHING, "at_work": {"a": 2, "b": 0}}
    assert turns(wants(a=9)).turn(20.0, backlog={"a": 200}, **busy).kind == "up"


def test_engines_that_do_not_tell_who_is_at_work_are_not_held_up():
    unknown = {**NOTHING, "at_work": {}}
    assert turns(wants(a=9)).turn(20.0, backlog={"a": 200}, **unknown).kind == "up"


def test_an_operator_that_nothing_arrives_for_is_not_stalled():
    nobody = {"served_per_s": {"a": 0.0, "b": 0.0}, "at_work": {"a": 0, "b": 0}}
    assert turns(wants(a=1)).turn(0.0, **nobody).kind == "down"


def test_operators_behind_a_stalled_one_count_as_well():
    """How many records will reach them is not known, so their backlog may be 0."""
    look = seen(CHAIN, START, at_s=10, lasted_s=10, per_s=20.0, backlog={"a": 200}, **NOTHING)
    nothing = replace(look.operators["b"], arrivals_per_s=0.0)
    look = replace(look, operators={**look.operators, "b": nothing})
    assert stalled(CHAIN, look) == ("a", "b")
    busy = replace(nothing, served=5.0)
    assert stalled(CHAIN, replace(look, operators={**look.operators, "b": busy})) == ("a",)


def test_others_change_meanwhile():
    only_b = {"served_per_s": {"b": 0.0}, "at_work": {"b": 0}, "backlog": {"b": 400}}
    decision = turns(wants(a=5, b=9)).turn(4.0, **only_b)
    assert decision.after.allocation == {"a": 5, "b": 2}
    assert decision.reason == (
        "a test: 5:2; no record was processed at b although records wait, and its processors "
        "are idle; more processors would not help"
    )


def test_processors_that_a_stalled_operator_was_to_give_are_not_added_elsewhere():
    """There would be more than the policy may use."""
    only_b = {"served_per_s": {"b": 0.0}, "at_work": {"b": 0}, "backlog": {"b": 400}}
    decision = turns(wants(a=3, b=1)).turn(4.0, **only_b)
    assert decision.kind == "hold"
    assert "no record was processed at b" in decision.reason


def test_an_operator_without_a_processor_is_not_stalled_but_short_of_them():
    look = seen(CHAIN, START, at_s=10, lasted_s=10, per_s=20.0, backlog={"a": 200}, **NOTHING)
    none = {name: replace(o, running=0) for name, o in look.operators.items()}
    assert stalled(CHAIN, replace(look, operators=none)) == ()

from dataclasses import replace

import pytest

from sojourn.act.recommendation import Recommended, demand, held, recommended
from sojourn.decide.plan import Plan
from sojourn.knowledge import Knowledge, Wish
from unit.act.policy.turns import CHAIN, Turns, seen

KNOWN = Knowledge(topology=CHAIN, plan=Plan.here({"a": 2, "b": 2}))


def look(per_s, *, running=100, **told):
    return seen(CHAIN, {"a": running, "b": running}, at_s=60, lasted_s=60, per_s=per_s, **told)


def test_demand_is_what_enters_and_what_that_becomes():
    load = demand(CHAIN, look(4.0, service_s={"b": 0.25}))
    assert load.per_s == pytest.approx({"a": 4.0, "b": 8.0})
    assert load.processors == pytest.approx({"a": 4.0, "b": 2.0})


def test_demand_of_an_operator_is_the_same_while_the_one_before_it_holds_it_up():
    assert demand(CHAIN, look(4.0, running=1)).per_s == pytest.approx({"a": 4.0, "b": 8.0})


def test_when_nothing_arrives_there_is_hardly_any_demand():
    load = demand(CHAIN, look(0.0))
    assert load.per_s == pytest.approx({"a": 0.5 / 60, "b": 1 / 60})
    assert load.service_s == {"a": 1.0, "b": 0.5}


def test_of_nothing_seen_nothing_is_changed():
    wish = held(KNOWN)
    assert wish.allocation == KNOWN.allocation
    assert wish.reason == "measurements are not usable: no observation yet"


def test_a_change_keeps_to_the_most_there_may_be_and_says_so():
    now = Recommended(knowledge=KNOWN, wanted={"a": 9, "b": 9}, offered={}, most=8)
    wish = now.change({"a": 9, "b": 9}, "busy")
    assert wish.allocation == {"a": 4, "b": 4}
    assert wish.wanted == {"a": 9, "b": 9}
    assert wish.reason == "busy: 4:4, limited to 8 processors"


def test_a_change_keeps_to_the_bounds_of_operators():
    bound = replace(
        CHAIN, operators=(replace(CHAIN.operators[0], max_processors=5), *CHAIN.operators[1:])
    )
    now = Recommended(
        knowledge=replace(KNOWN, topology=bound), wanted={"a": 5, "b": 9}, offered={}, most=None
    )
    assert now.change({"a": 9, "b": 0}, "busy").allocation == {"a": 5, "b": 1}


def test_what_was_recommended_comes_back_newest_first_without_what_was_not():
    def wanting(known):
        number = len(known.episodes)
        return Wish(
            allocation=known.allocation,
            reason="a test",
            wanted=None if number == 2 else {"a": number, "b": 1},
        )

    turns = Turns(wanting, CHAIN, {"a": 2, "b": 2}, every_s=10)
    turns.turns(5, 1.0)
    lately = recommended(turns.knowledge, 20.0)
    assert [(past.at_s, past.wish.wanted["a"]) for past in lately] == [
        (50, 4),
        (40, 3),
        (20, 1),
    ]

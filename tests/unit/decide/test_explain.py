from math import inf

import pytest

import sojourn as sj


def topology(**bounds):
    return sj.Topology(
        name="some",
        arrivals=(sj.Arrival(name="in", per_s=10, into="a"),),
        operators=(
            sj.Operator(name="a", service_s=0.25, emits={"b": 2}, **bounds),
            sj.Operator(name="b", service_s=0.05),
            sj.Operator(name="unreached", service_s=1.0, min_processors=2),
        ),
    )


ALLOCATION = {"a": 4, "b": 2, "unreached": 2}


def test_gains_are_what_predict_says_of_one_more_and_one_fewer():
    here = sj.predict(topology(), ALLOCATION).mean_s
    explained = sj.explain(topology(), ALLOCATION).operators["a"]
    more = sj.predict(topology(), ALLOCATION | {"a": 5}).mean_s
    fewer = sj.predict(topology(), ALLOCATION | {"a": 3}).mean_s
    assert explained.next_gain_s == pytest.approx(here - more)
    assert explained.last_gain_s == pytest.approx(fewer - here)


def test_shares_add_up():
    explanation = sj.explain(topology(), ALLOCATION)
    assert sum(o.share_ratio for o in explanation.operators.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("bounds", "processors", "binds"),
    [
        ({}, 4, "gain"),
        ({}, 3, "keeping up"),
        ({"min_processors": 4}, 4, "min_processors"),
        ({"max_processors": 4}, 4, "max_processors"),
        ({"max_processors": 3}, 3, "max_processors"),
    ],
)
def test_it_says_what_sets_the_number(bounds, processors, binds):
    explanation = sj.explain(topology(**bounds), ALLOCATION | {"a": processors})
    assert explanation.operators["a"].binds == binds


def test_one_fewer_than_keeping_up_is_infinite_but_not_where_nothing_arrives():
    explanation = sj.explain(topology(), ALLOCATION | {"a": 3, "unreached": 1})
    assert explanation.operators["a"].last_gain_s == inf
    assert explanation.operators["unreached"].last_gain_s == 0


def test_the_floor_weighs_service_by_visits():
    assert sj.explain(topology(), ALLOCATION).floor_s == pytest.approx(0.25 + 2 * 0.05)


def test_headroom_and_neighbours_come_along():
    target = sj.Target("mean", 0.8)
    explanation = sj.explain(topology(), ALLOCATION, target)
    assert explanation.headroom == sj.headroom(topology(), ALLOCATION, target)
    assert explanation.neighbours == sj.neighbours(topology(), ALLOCATION)


def test_an_application_that_takes_no_time_has_no_shares():
    idle = sj.Topology(
        name="idle",
        arrivals=(sj.Arrival(name="in", per_s=1, into="a"),),
        operators=(sj.Operator(name="a", service_s=0),),
    )
    assert sj.explain(idle, {"a": 1}).operators["a"].share_ratio == 0

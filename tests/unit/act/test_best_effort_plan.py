from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.act.best_effort_plan import Goal, aim
from sojourn.act.recommendation import bounded, ration
from sojourn.decide.assign import assign
from sojourn.decide.minimise import minimise
from sojourn.decide.target import Target
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies

PAIR = Topology(
    name="pair",
    arrivals=(Arrival(name="in", per_s=10, into="a"),),
    operators=(
        Operator(name="a", service_s=0.35, emits={"b": 1}),
        Operator(name="b", service_s=0.25),
    ),
)


def bounds(topology, **most):
    operators = tuple(replace(o, max_processors=most.get(o.name)) for o in topology.operators)
    return replace(topology, operators=operators)


def test_what_can_be_planned_is_planned():
    target = Target("mean", 0.8)
    found = aim(PAIR, Goal(target=target))
    assert found.allocation == minimise(PAIR, target).allocation
    assert found.note == ""
    assert aim(PAIR, Goal(most=12)).allocation == assign(PAIR, 12).allocation


def test_processors_that_do_not_meet_the_target_are_all_used():
    found = aim(PAIR, Goal(target=Target("mean", 0.61), most=9))
    assert found.allocation == assign(PAIR, 9).allocation
    assert found.note == "9 processors do not reach mean ≤ 0.61 s; 14 are needed"


def test_processors_that_do_not_keep_up_are_shared_out_by_need():
    found = aim(PAIR, Goal(target=Target("mean", 0.8), most=5))
    assert found.allocation == {"a": 3, "b": 2}
    assert "cannot keep up" in found.note


def test_a_target_below_the_floor_is_come_near_to():
    found = aim(PAIR, Goal(target=Target("p95", 0.1)))
    assert "no number of processors reaches p95 ≤ 0.1 s" in found.note
    assert 7 < sum(found.allocation.values()) < 30


def test_a_bound_that_forbids_keeping_up_is_kept():
    found = aim(bounds(PAIR, a=2), Goal(target=Target("mean", 0.8)))
    assert found.allocation["a"] == 2
    assert found.allocation["b"] >= 3
    assert "max_processors is 2" in found.note


def test_bounds_that_forbid_the_target_are_used_up():
    found = aim(bounds(PAIR, a=4, b=3), Goal(target=Target("mean", 0.61)))
    assert found.allocation == {"a": 4, "b": 3}


def test_a_backlog_is_a_need_of_its_own():
    found = aim(PAIR, Goal(target=Target("mean", 0.8)), {"a": 9, "b": 1})
    assert found.allocation["a"] == 9
    short = aim(PAIR, Goal(target=Target("mean", 0.8), most=6), {"a": 20, "b": 4})
    assert short.allocation == {"a": 5, "b": 1}


def test_percentiles_of_a_loop_that_all_but_multiplies_are_aimed_at_by_the_mean():
    loop = Topology(
        name="loop",
        arrivals=(Arrival(name="in", per_s=1, into="a"),),
        operators=(Operator(name="a", service_s=0.001, emits={"a": 0.9995, "b": 0.5}),
                   Operator(name="b", service_s=0.001)),
    )  # fmt: skip
    found = aim(loop, Goal(target=Target("p95", 100.0)))
    assert found.allocation["a"] >= 2
    assert found.note


@settings(max_examples=60)
@given(
    topology=topologies(max_operators=4, max_erlangs=4),
    seconds=st.floats(1e-3, 100),
    most=st.none() | st.integers(1, 30),
    need=st.integers(0, 50),
)
def test_there_always_is_an_aim_within_the_bounds(topology, seconds, most, need):
    needs = dict.fromkeys(topology.operator, need)
    found = aim(topology, Goal(target=Target("mean", seconds), most=most), needs)
    assert set(found.allocation) == set(topology.operator)
    for operator in topology.operators:
        k = found.allocation[operator.name]
        assert 1 <= k <= (operator.max_processors or k)
    least = sum(o.min_processors for o in topology.operators)
    if most is not None and most >= least:
        assert sum(found.allocation.values()) <= most
        assert all(found.allocation[o.name] >= o.min_processors for o in topology.operators)


@given(st.integers(1, 40), st.floats(0.1, 20), st.floats(0.1, 20))
def test_nobody_is_better_off_who_could_have_given_to_the_worst_off(processors, one, two):
    given_out = ration(PAIR, {"a": one, "b": two}, processors)
    assert sum(given_out.values()) == max(2, processors)
    shares = {
        name: k / need for (name, k), need in zip(given_out.items(), (one, two), strict=True)
    }
    worst = min(shares, key=shares.get)
    other = "b" if worst == "a" else "a"
    need = {"a": one, "b": two}[other]
    if given_out[other] > 1:
        assert (given_out[other] - 1) / need <= shares[worst] + 1e-9


def test_what_is_wanted_is_kept_within_bounds():
    assert bounded(bounds(PAIR, a=3), {"a": 9.0, "b": 0.2}) == {"a": 3, "b": 1}
    assert sum(bounded(PAIR, {"a": 60, "b": 40}, most=10).values()) == 10


@pytest.mark.parametrize(
    ("goal", "text"),
    [(Goal(most=9), "9 processors"), (Goal(target=Target("mean", 2)), "mean ≤ 2 s")],
)
def test_goals_say_what_they_are(goal, text):
    assert str(goal) == text

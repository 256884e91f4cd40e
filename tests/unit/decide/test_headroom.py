from math import inf

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sojourn as sj
from strategies import topologies


def chain(**changes):
    return sj.Topology(
        name="chain",
        arrivals=(sj.Arrival(name="in", per_s=10, into="a"),),
        operators=(
            sj.Operator(name="a", service_s=0.2, emits={"b": 1}, **changes),
            sj.Operator(name="b", service_s=0.1),
        ),
    )


def test_without_a_target_the_busiest_operator_is_the_limit():
    room = sj.headroom(chain(), {"a": 3, "b": 4})
    assert room.factor == pytest.approx(1.5)
    assert room.binds == "a cannot keep up"


def test_an_operator_that_takes_no_time_never_is():
    room = sj.headroom(chain(speed=1e15), {"a": 1, "b": 2})
    assert room.binds == "b cannot keep up"


any_plan = given(topology=topologies(), spare=st.integers(0, 6), slack=st.floats(1.01, 3))


@settings(max_examples=5)
@any_plan
def test_at_the_factor_the_target_just_holds(topology, spare, slack):
    holds_at_the_factor(topology, spare, slack)


@pytest.mark.slow
@settings(max_examples=100)
@any_plan
def test_at_the_factor_the_target_just_holds_for_many(topology, spare, slack):
    holds_at_the_factor(topology, spare, slack)


def holds_at_the_factor(topology, spare, slack):
    least = sum(
        max(o.min_processors, topology.loads[o.name].min_processors) for o in topology.operators
    )
    try:
        plan = sj.assign(topology, least + spare)
    except sj.SojournError:
        assume(False)
    assume(plan.mean_s > 0)
    target = sj.Target("mean", plan.mean_s * slack)
    room = sj.headroom(topology, plan.allocation, target)
    assert room.factor >= 1 - 1e-4
    if room.factor < inf:
        held = sj.predict(topology.scaled(room.factor), plan.allocation)
        assert held.mean_s <= target.seconds * (1 + 1e-9)


def test_growing_a_little_further_breaks_the_target():
    target = sj.Target("p95", 1.5)
    room = sj.headroom(chain(), {"a": 4, "b": 3}, target)
    assert room.binds == "p95 ≤ 1.5 s breaks"
    beyond = sj.predict(chain().scaled(room.factor * 1.001), {"a": 4, "b": 3})
    assert beyond.percentiles_s["p95"] > 1.5


def test_a_target_already_broken_says_how_far_arrivals_must_fall():
    room = sj.headroom(chain(), {"a": 3, "b": 2}, sj.Target("mean", 0.35))
    assert 0 < room.factor < 1


def test_a_target_below_the_floor_has_no_headroom_at_all():
    assert sj.headroom(chain(), {"a": 3, "b": 2}, sj.Target("mean", 0.1)).factor == 0


def test_what_takes_no_time_can_grow_without_end():
    idle = sj.Topology(
        name="idle",
        arrivals=(sj.Arrival(name="in", per_s=1, into="a"),),
        operators=(sj.Operator(name="a", service_s=0, transfer_s=0.1),),
    )
    assert sj.headroom(idle, {"a": 1}, sj.Target("mean", 0.2)).factor == inf
    assert sj.headroom(idle, {"a": 1}, sj.Target("mean", 0.05)).factor == 0
    assert sj.headroom(idle, {"a": 1}).factor == inf

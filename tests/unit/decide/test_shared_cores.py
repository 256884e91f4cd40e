from dataclasses import replace
from math import inf

import pytest

import sojourn as sj
from sojourn.errors import TargetBelowFloor, TooFewCores

CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=20, into="parse"),),
    operators=(
        sj.Operator(name="parse", service_s=0.05, cpu_s=0.05, emits={"fetch": 1}),
        sj.Operator(name="fetch", service_s=0.2, cpu_s=0.02),
    ),
    cores=2,
)
ENOUGH = replace(CHAIN, cores=None)


def test_a_plan_and_what_is_predicted_of_it_agree():
    for plan in (sj.assign(CHAIN, 12), sj.minimise(CHAIN, sj.Target("mean", 0.4))):
        predicted = sj.predict(CHAIN, plan.allocation)
        assert plan.mean_s == pytest.approx(predicted.mean_s)
        assert plan.computing == predicted.computing


@pytest.mark.parametrize("statistic", ["mean", "p95"])
def test_a_target_is_met_with_the_cores_as_they_are_shared(statistic):
    target = sj.Target(statistic, {"mean": 0.4, "p95": 1.0}[statistic])
    plan = sj.minimise(CHAIN, target)
    predicted = sj.predict(CHAIN, plan.allocation)
    reached_s = {"mean": predicted.mean_s, **predicted.percentiles_s}[statistic]
    assert reached_s <= target.seconds
    assert plan.processors >= sj.minimise(ENOUGH, target).processors


def test_no_plan_with_one_fewer_meets_the_target():
    target = sj.Target("mean", 0.4)
    plan = sj.minimise(CHAIN, target)
    total = plan.processors - 1
    for parse in range(2, total):
        try:
            found = sj.predict(CHAIN, {"parse": parse, "fetch": total - parse}).mean_s
        except sj.SojournError:
            continue
        assert found > target.seconds


def test_keeping_up_takes_no_more_processors_than_cores_can_run():
    """As the cores fill up a record takes many times as long, but only if many share them."""
    alone = replace(CHAIN, operators=(replace(CHAIN.operators[0], emits={}),)).scaled(1.8)
    assert sj.minimise(alone, sj.Target("mean", 10.0)).allocation == {"parse": 2}


def test_a_target_that_the_cores_forbid_is_below_the_floor():
    sj.minimise(ENOUGH.scaled(1.3), sj.Target("mean", 0.3))
    with pytest.raises(TargetBelowFloor):
        sj.minimise(CHAIN.scaled(1.3), sj.Target("mean", 0.3))


@pytest.mark.parametrize(
    "plan",
    [lambda t: sj.assign(t, 100), lambda t: sj.minimise(t, sj.Target("mean", 9.0))],
    ids=["assign", "minimise"],
)
def test_no_plan_is_made_where_cores_cannot_keep_up(plan):
    with pytest.raises(TooFewCores):
        plan(CHAIN.scaled(2))


def test_many_cores_are_as_good_as_enough():
    plan, other = (sj.assign(t, 12) for t in (replace(CHAIN, cores=64), ENOUGH))
    assert plan.allocation == other.allocation
    assert plan.mean_s == pytest.approx(other.mean_s)
    assert plan.computing.stretch == 1


def test_whole_nodes_count_with_all_their_processors():
    plan = sj.minimise(CHAIN, sj.Target("mean", 0.4), nodes=sj.NodeSize(slots=5))
    assert plan.processors % 5 == 0
    assert sj.predict(CHAIN, plan.allocation).mean_s <= 0.4


# -- explained ---------------------------------------------------------------------------------


def test_one_more_that_computes_slows_all_others_down():
    allocation = {"parse": 12, "fetch": 12}
    explained = sj.explain(CHAIN.scaled(1.3), allocation).operators
    assert explained["parse"].next_gain_s < 0
    assert explained["parse"].last_gain_s < inf


def test_arrivals_can_grow_until_the_cores_are_busy():
    room = sj.headroom(CHAIN, {"parse": 50, "fetch": 50})
    assert room.binds == "the cores cannot keep up"
    assert room.factor == pytest.approx(2 / 1.4, rel=1e-2)
    with pytest.raises(TooFewCores):
        sj.predict(CHAIN.scaled(room.factor * 1.01), {"parse": 50, "fetch": 50})


def test_or_until_an_operator_is_slowed_down_too_much():
    room = sj.headroom(CHAIN, {"parse": 4, "fetch": 5})
    assert room.binds == "fetch cannot keep up"
    assert 1 < room.factor < 5 / 4


def test_or_until_a_target_breaks():
    target = sj.Target("mean", 0.5)
    room = sj.headroom(CHAIN, {"parse": 4, "fetch": 12}, target)
    reached_s = sj.predict(CHAIN.scaled(room.factor), {"parse": 4, "fetch": 12}).mean_s
    assert reached_s == pytest.approx(0.5, rel=1e-3)


def test_neighbours_share_the_cores_in_their_own_way():
    for neighbour in sj.neighbours(CHAIN, {"parse": 4, "fetch": 8}):
        predicted = sj.predict(CHAIN, neighbour.allocation)
        assert (neighbour.mean_s, neighbour.std_s) == (predicted.mean_s, predicted.std_s)


def test_a_neighbour_that_cannot_keep_up_is_never_done():
    last = sj.neighbours(CHAIN, {"parse": 2, "fetch": 9})[-1]
    assert (last.giver, last.mean_s) == ("parse", inf)


@pytest.mark.parametrize("processors", [8, 10, 12, 16])
def test_no_other_use_of_as_many_processors_is_better(processors):
    plan = sj.assign(CHAIN.scaled(1.15), processors)
    for parse in range(1, processors):
        try:
            other = sj.predict(
                CHAIN.scaled(1.15), {"parse": parse, "fetch": processors - parse}
            )
        except sj.SojournError:
            continue
        assert plan.mean_s <= other.mean_s * (1 + 1e-9)

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sojourn.decide.assign import assign
from sojourn.decide.gains import QUICK, Effort, least_allocation
from sojourn.decide.minimise import minimise
from sojourn.decide.solution import NodeSize
from sojourn.decide.target import Target
from sojourn.errors import (
    BadTarget,
    BoundTooLow,
    TargetBelowFloor,
    TargetOutOfReach,
    TargetTooStrict,
    TooFewProcessors,
)
from sojourn.model.network import mean_floor_s, mean_s, predict
from sojourn.model.station import names
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies

MACHINES = NodeSize(slots=5, reserved=3)


def chain(*operators, per_s=13.0, scv=1.0):
    linked = [
        replace(operator, emits={after.name: 1.0}) for operator, after in pairwise(operators)
    ]
    return Topology(
        name="chain",
        arrivals=(Arrival(name="roots", per_s=per_s, into=operators[0].name, scv=scv),),
        operators=(*linked, operators[-1]),
    )


EXTRACT = Operator(name="extract", service_s=0.50)
MATCH = Operator(name="match", service_s=0.55)
AGGREGATE = Operator(name="aggregate", service_s=0.02)
VLD = chain(EXTRACT, MATCH, AGGREGATE)
FLOOR_S = 1.07


def reaches_s(topology, processors, statistic="mean"):
    """Return what so many processors, handed out by gain, reach."""
    allocation = assign(topology, processors, model="mmk").allocation
    if statistic == "mean":
        return mean_s(topology, allocation, model="mmk")
    return predict(topology, allocation, model="mmk").percentiles_s[statistic]


@pytest.mark.parametrize("processors", [17, 18, 22, 30])
def test_what_so_many_just_reach_takes_so_many(processors):
    just_s = reaches_s(VLD, processors)
    plan = minimise(VLD, Target("mean", just_s), model="mmk")
    assert plan.processors == plan.least == processors
    assert plan.mean_s == just_s
    a_hair_less = minimise(VLD, Target("mean", just_s * (1 - 1e-12)), model="mmk")
    assert a_hair_less.processors == processors + 1


def test_a_plan_says_why():
    plan = minimise(VLD, Target("mean", 1.5), model="mmk")
    assert (plan.name, plan.model, plan.target) == ("chain", "mmk", Target("mean", 1.5))
    fewer_s = reaches_s(VLD, plan.processors - 1)
    assert plan.reason == (
        f"{plan.processors} processors are the fewest that meet mean ≤ 1.5 s; "
        f"the best use of {plan.processors - 1} gives {fewer_s:.4g} s; "
        "16 is the minimum for stability"
    )
    assert plan.nodes is None


def test_where_keeping_up_is_enough_it_says_so():
    plan = minimise(VLD, Target("mean", 100.0))
    assert plan.allocation == least_allocation(VLD)
    assert plan.reason == "16 processors are the minimum for stability, and meet mean ≤ 100 s"


def test_below_the_floor_no_number_will_do():
    with pytest.raises(TargetBelowFloor, match="mean ≤ 1 s: without any waiting") as no:
        minimise(VLD, Target("mean", 1.0))
    assert no.value.floor_s == pytest.approx(FLOOR_S)


def test_exactly_at_the_floor_no_number_will_do_where_anybody_waits():
    floor_s = mean_floor_s(VLD)
    with pytest.raises(TargetBelowFloor):
        minimise(VLD, Target("mean", floor_s))


@pytest.mark.parametrize("above", [1e-3, 1e-6, 1e-9, 1e-12])
def test_just_above_the_floor_some_number_will_do(above):
    target = Target("mean", FLOOR_S * (1 + above))
    plan = minimise(VLD, target, model="mmk")
    assert plan.mean_s <= target.seconds < reaches_s(VLD, plan.processors - 1)


def test_exactly_at_the_floor_the_least_will_do_where_nobody_waits():
    clockwork = chain(replace(EXTRACT, service_scv=0.0), scv=0.0)
    plan = minimise(clockwork, Target("mean", mean_floor_s(clockwork)))
    assert plan.allocation == {"extract": 7}


def test_below_the_floor_no_number_will_do_where_nobody_waits():
    clockwork = chain(replace(EXTRACT, service_scv=0.0), scv=0.0)
    with pytest.raises(TargetBelowFloor):
        minimise(clockwork, Target("mean", 0.4))


def test_the_floor_counts_the_wire():
    with pytest.raises(TargetBelowFloor) as no:
        minimise(chain(replace(EXTRACT, transfer_s=0.25)), Target("mean", 0.6))
    assert no.value.floor_s == pytest.approx(0.75)


@pytest.mark.parametrize("statistic", ["mean", "p95"])
def test_exactly_the_most_allowed_is_allowed(statistic):
    target = Target(statistic, 3.0 if statistic == "p95" else 1.5)
    free = minimise(VLD, target)
    assert minimise(VLD, target, most=free.processors) == free


@pytest.mark.parametrize(("statistic", "seconds"), [("mean", 1.2), ("p95", 2.9)])
def test_more_than_allowed_is_refused_with_what_it_takes(statistic, seconds):
    target = Target(statistic, seconds)
    needed = minimise(VLD, target, model="mmk").processors
    with pytest.raises(TargetOutOfReach, match=f"{needed} are needed") as no:
        minimise(VLD, target, model="mmk", most=needed - 1)
    assert (no.value.processors, no.value.needed) == (needed - 1, needed)
    assert no.value.reached_s == reaches_s(VLD, needed - 1, statistic)
    assert no.value.reached_s > seconds


def test_fewer_than_keep_up_are_refused_as_such():
    with pytest.raises(TooFewProcessors, match="at least 16 are needed"):
        minimise(VLD, Target("mean", 1.5), most=15)


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_what_is_no_number_of_processors_is_refused(most):
    with pytest.raises(BadTarget):
        minimise(VLD, Target("mean", 1.5), most=most)


def test_bounds_that_keep_the_target_out_of_reach_are_blamed():
    bounded = chain(*(replace(o, max_processors=9) for o in (EXTRACT, MATCH, AGGREGATE)))
    with pytest.raises(TargetOutOfReach, match="raise max_processors") as no:
        minimise(bounded, Target("mean", 1.1), model="mmk")
    assert (no.value.processors, no.value.needed) == (27, None)
    assert no.value.reached_s == reaches_s(bounded, 27)


def test_an_idle_operator_without_bound_does_not_take_what_cannot_help():
    """The other operators' bounds are in the way, and no ten million processors help."""
    bounded = chain(*(replace(o, max_processors=9) for o in (EXTRACT, MATCH, AGGREGATE)))
    idle = Operator(name="idle", service_s=1.0)
    stuck = replace(bounded, operators=(*bounded.operators, idle))
    with pytest.raises(TargetOutOfReach) as no:
        minimise(stuck, Target("mean", 1.1))
    assert no.value.processors == 28


@pytest.mark.parametrize(("statistic", "seconds"), [("mean", 1.01), ("p95", 3.1)])
def test_a_search_ends_where_its_effort_does(statistic, seconds):
    busy = Topology(
        name="busy",
        arrivals=(Arrival(name="in", per_s=2000, into="a"),),
        operators=(Operator(name="a", service_s=1.0),),
    )
    target = Target(statistic, seconds)
    with pytest.raises(TargetTooStrict, match="more than 2001 processors are needed") as no:
        minimise(busy, target, effort=Effort(looks=10, times=0))
    assert no.value.reached_s > seconds
    assert 2001 < minimise(busy, target, effort=QUICK).processors < 2500


def test_a_bound_below_what_keeping_up_takes_is_named():
    with pytest.raises(BoundTooLow, match="extract: max_processors is 6"):
        minimise(chain(replace(EXTRACT, max_processors=6)), Target("mean", 1.0))


def test_machines_come_whole_and_all_their_processors_are_used():
    for processors, nodes, used in ((17, 4, 17), (18, 5, 22), (22, 5, 22)):
        target = Target("mean", reaches_s(VLD, processors))
        plan = minimise(VLD, target, model="mmk", nodes=MACHINES)
        assert (plan.nodes, plan.processors, plan.least) == (nodes, used, processors)
        assert plan.allocation == assign(VLD, used, model="mmk").allocation
        assert plan.reason.endswith(f"; this takes {nodes} whole nodes")


def test_machines_may_have_more_than_operators_may():
    bounded = chain(replace(EXTRACT, max_processors=8))
    target = Target("mean", reaches_s(bounded, 8))
    plan = minimise(bounded, target, model="mmk", nodes=NodeSize(slots=6))
    assert (plan.nodes, plan.processors) == (2, 8)


def test_machines_beyond_what_is_allowed_are_refused_with_what_the_allowed_ones_reach():
    """18 processors would do; but of machines that come whole, 18 allow no more than 17."""
    target = Target("mean", reaches_s(VLD, 18))
    with pytest.raises(TargetOutOfReach) as no:
        minimise(VLD, target, model="mmk", nodes=MACHINES, most=18)
    assert (no.value.processors, no.value.needed) == (18, 22)
    assert no.value.reached_s == pytest.approx(reaches_s(VLD, 17))
    assert no.value.reached_s > target.seconds


def test_a_percentile_is_met_by_whole_machines_too():
    plan = minimise(VLD, Target("p95", 3.0), nodes=MACHINES)
    assert (plan.nodes, plan.processors) == (5, 22)
    assert predict(VLD, plan.allocation).percentiles_s["p95"] <= 3.0


@pytest.mark.parametrize("short", [1e-3, 1e-6, 1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("seconds", [1.5, 1.01, 1 + 1e-4, 1 + 1e-8])
@pytest.mark.parametrize("erlangs", [1, 3, 10])
def test_operators_that_are_all_but_full_get_no_more_than_they_need(erlangs, seconds, short):
    """Where the first wait is all but endless, its rounding dwarfs those that follow."""
    busy = chain(Operator(name="a", service_s=1.0), per_s=erlangs - short)
    plan = minimise(busy, Target("mean", seconds), model="mmk")
    assert plan.mean_s <= seconds < mean_s(busy, {"a": plan.processors - 1}, model="mmk")


@given(topology=topologies(keys=True), ratio=st.floats(1.001, 3))
@settings(max_examples=100, deadline=None)
def test_one_processor_fewer_misses_the_target(topology, ratio):
    unbounded = tuple(replace(o, max_processors=None) for o in topology.operators)
    topology = replace(topology, operators=unbounded)
    assume(mean_floor_s(topology) > 0)
    least = sum(least_allocation(topology).values())
    for model in names():
        target_s = ratio * mean_floor_s(topology, model=model)
        plan = minimise(topology, Target("mean", target_s), model=model)
        assert mean_s(topology, plan.allocation, model=model) <= target_s
        if plan.processors > least:
            fewer = assign(topology, plan.processors - 1, model=model)
            assert fewer.mean_s > target_s * (1 - 1e-12)

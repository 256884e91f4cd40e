from dataclasses import replace
from itertools import product
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.decide.gains import Effort, least_allocation
from sojourn.decide.minimise import minimise
from sojourn.decide.percentile import fewest_for_percentile
from sojourn.decide.target import Target
from sojourn.errors import TargetBelowFloor, TargetOutOfReach
from sojourn.model.network import PERCENTILES, predict
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies

every_percentile = pytest.mark.parametrize("statistic", PERCENTILES)


def fanning_out(*operators, per_s=10.0):
    """Every root goes to all operators at once."""
    split = Operator(name="split", service_s=0.0, emits={o.name: 1 for o in operators})
    arrival = Arrival(name="roots", per_s=per_s, into="split")
    return Topology(name="fan", arrivals=(arrival,), operators=(split, *operators))


ONE = Topology(
    name="one",
    arrivals=(Arrival(name="roots", per_s=10, into="count"),),
    operators=(Operator(name="count", service_s=0.5),),
)
UNEVEN = fanning_out(
    Operator(name="slow", service_s=0.5),
    Operator(name="wild", service_s=0.1, service_scv=6.0),
    Operator(name="quick", service_s=0.05, dispatch="round_robin"),
)


SELDOM_SLOW = Topology(
    name="seldom",
    arrivals=(Arrival(name="roots", per_s=10, into={"quick": 0.7, "slow": 0.3}),),
    operators=(
        Operator(name="quick", service_s=0.5),
        Operator(name="slow", service_s=5.0),
    ),
)
IN_A_ROW = Topology(
    name="row",
    arrivals=(Arrival(name="roots", per_s=1, into="a"),),
    operators=(
        Operator(name="a", service_s=0.2, emits={"b": 1}),
        Operator(name="b", service_s=0.2, service_scv=0.0, emits={"c": 2}),
        Operator(name="c", service_s=0.05),
    ),
)


def reached_s(topology, allocation, statistic, model="gigk"):
    return predict(topology, allocation, model=model).percentiles_s[statistic]


def fewest(topology, statistic, seconds):
    return fewest_for_percentile(topology, Target(statistic, seconds), model="gigk")


def check_no_fewer_do(topology, statistic, seconds, found):
    """Try all allocations of one processor fewer; any with still fewer are worse."""
    assert reached_s(topology, found, statistic) <= seconds
    least, total = least_allocation(topology), sum(found.values())
    spare = total - 1 - sum(least.values())
    for further in product(range(spare + 1), repeat=len(least)):
        if sum(further) == spare:
            fewer = {name: k + f for (name, k), f in zip(least.items(), further, strict=True)}
            assert reached_s(topology, fewer, statistic) > seconds


@every_percentile
@pytest.mark.parametrize("processors", [6, 7, 9])
def test_of_one_operator_what_so_many_just_reach_takes_so_many(statistic, processors):
    just_s = reached_s(ONE, {"count": processors}, statistic)
    found = fewest(ONE, statistic, just_s)
    assert found.allocation == {"count": processors}
    assert found.least == processors
    assert fewest(ONE, statistic, just_s * (1 - 1e-4)).least == processors + 1


@every_percentile
def test_of_branches_no_other_allocation_does_with_fewer(statistic):
    """The percentile of the last of several branches is no sum, so gains only start it."""
    generous = {name: k + 2 for name, k in least_allocation(UNEVEN).items()}
    target_s = reached_s(UNEVEN, generous, statistic) * 1.001
    found = fewest(UNEVEN, statistic, target_s)
    assert found.least == sum(found.allocation.values())
    check_no_fewer_do(UNEVEN, statistic, target_s, found.allocation)


@every_percentile
def test_where_keeping_up_is_enough_that_is_all(statistic):
    found = fewest(UNEVEN, statistic, 1_000.0)
    assert found.allocation == least_allocation(UNEVEN)
    assert found.least == sum(found.allocation.values())


@every_percentile
def test_below_the_floor_no_number_will_do(statistic):
    floor_s = -0.5 * log(1 - PERCENTILES[statistic])
    for part in (0.1, 0.9, 0.98):
        with pytest.raises(TargetBelowFloor, match=f"{statistic} ≤") as no:
            fewest(ONE, statistic, floor_s * part)
        assert no.value.floor_s == pytest.approx(floor_s, rel=2e-3)


@every_percentile
def test_at_the_floor_no_number_will_do_where_anybody_waits(statistic):
    """So close that only the finer look tells; and it stops when nobody waits any more."""
    floor_s = reached_s(ONE, {"count": 1_000}, statistic)
    with pytest.raises(TargetBelowFloor) as no:
        fewest(ONE, statistic, floor_s * (1 - 1e-6))
    assert no.value.floor_s == pytest.approx(floor_s)


@every_percentile
def test_just_above_the_floor_some_number_will_do(statistic):
    floor_s = reached_s(ONE, {"count": 1_000}, statistic)
    found = fewest(ONE, statistic, floor_s * (1 + 1e-4))
    assert reached_s(ONE, found.allocation, statistic) <= floor_s * (1 + 1e-4)
    assert found.least == found.allocation["count"] < 30


@every_percentile
def test_bounds_that_keep_the_target_out_of_reach_are_blamed(statistic):
    operators = tuple(replace(o, max_processors=7) for o in UNEVEN.operators)
    bounded = replace(UNEVEN, operators=operators)
    most = dict.fromkeys(bounded.operator, 7)
    best_s = reached_s(bounded, most, statistic)
    with pytest.raises(TargetOutOfReach) as no:
        fewest(bounded, statistic, best_s * 0.999)
    # more than one for an operator that takes no time would shorten nothing
    assert no.value.processors == 22
    assert no.value.needed is None
    assert no.value.reached_s == pytest.approx(best_s, rel=1e-4)
    assert fewest(bounded, statistic, best_s * 1.001).least <= 22


@every_percentile
@pytest.mark.parametrize("most", [None, 3])
def test_records_that_wait_for_their_siblings_alone_get_processors_of_their_own(
    statistic, most
):
    """Where arrivals and services never vary, records do not wait for those of other roots."""
    split = Operator(name="split", service_s=0.0, emits={"count": 4.0})
    count = Operator(name="count", service_s=1.0, service_scv=0.0, max_processors=most)
    even = Topology(
        name="even",
        arrivals=(Arrival(name="roots", per_s=0.2, into="split", scv=0.0),),
        operators=(split, count),
    )
    assert minimise(even, Target(statistic, 2.1)).allocation["count"] == 2
    if most is None:
        assert minimise(even, Target(statistic, 1.1)).allocation["count"] == 4
    else:
        with pytest.raises(TargetOutOfReach, match=r"^4 processors .* gives [12]\.\d+ s"):
            minimise(even, Target(statistic, 1.1))
    with pytest.raises(TargetBelowFloor):
        minimise(even, Target(statistic, 0.9))


def test_operators_keep_what_they_must_have():
    operators = tuple(replace(o, min_processors=9) for o in UNEVEN.operators)
    found = fewest(replace(UNEVEN, operators=operators), "p95", 1_000.0)
    assert set(found.allocation.values()) == {9}


def test_a_bound_on_one_is_made_up_for_by_the_others():
    slow = replace(UNEVEN.operator["slow"], max_processors=6)
    others = [UNEVEN.operator[name] for name in ("wild", "quick")]
    bounded = fanning_out(slow, *others)
    target_s = 1.02 * reached_s(bounded, {"split": 1, "slow": 6, "wild": 9, "quick": 9}, "p95")
    found = fewest(bounded, "p95", target_s)
    assert found.allocation["slow"] == 6
    assert reached_s(bounded, found.allocation, "p95") <= target_s


def test_what_only_the_mean_needs_is_taken_away_again():
    """Three in ten take long; that is nothing to the median, but most of what gains see."""
    found = fewest(SELDOM_SLOW, "p50", 0.6)
    by_gain = minimise(SELDOM_SLOW, Target("mean", 1.95)).allocation
    assert reached_s(SELDOM_SLOW, by_gain, "p50") > 0.6
    assert sum(by_gain.values()) > sum(found.allocation.values()) == found.least
    check_no_fewer_do(SELDOM_SLOW, "p50", 0.6, found.allocation)


def test_where_neither_bounds_nor_moves_decide_all_that_is_left_is_tried():
    found = fewest(IN_A_ROW, "p95", 0.9341)
    assert found.least == sum(found.allocation.values()) == 6
    check_no_fewer_do(IN_A_ROW, "p95", 0.9341, found.allocation)


@pytest.mark.parametrize(
    ("topology", "statistic", "seconds"), [(SELDOM_SLOW, "p50", 0.6), (IN_A_ROW, "p95", 0.9341)]
)
def test_a_search_cut_short_anywhere_says_how_far_it_proved(topology, statistic, seconds):
    target = Target(statistic, seconds)
    proved, unproved = minimise(topology, target), 0
    assert proved.least == proved.processors
    for looks in range(0, 120, 2):
        plan = minimise(topology, target, effort=Effort(looks=looks))
        assert sum(least_allocation(topology).values()) <= plan.least <= proved.processors
        assert proved.processors <= plan.processors
        assert reached_s(topology, plan.allocation, statistic) <= seconds
        if plan.least < plan.processors:
            unproved += 1
            assert plan.reason == (
                f"{plan.processors} processors meet {target}; fewer than {plan.least} cannot, "
                "and the search stopped before it tried all numbers in between"
            )
    assert 0 < unproved < 60


@given(
    topology=topologies(max_operators=3, loops=False),
    statistic=st.sampled_from(list(PERCENTILES)),
    ratio=st.floats(1.05, 4),
)
@settings(max_examples=40, deadline=None)
def test_a_plan_meets_its_target_or_says_why_none_does(topology, statistic, ratio):
    unlimited = {o.name: o.max_processors or 40 for o in topology.operators}
    floor_s = reached_s(topology, unlimited, statistic)
    target = Target(statistic, floor_s * ratio or 1.0)
    plan = minimise(topology, target)
    assert plan.least <= plan.processors
    # where all takes the same time, a percentile may be off by a point of its lattice
    assert reached_s(topology, plan.allocation, statistic) <= target.seconds * 1.04

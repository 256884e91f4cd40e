"""What the published implementation of DRS got wrong, with the right answers.

Its formulas used factorials in 32-bit integers, so they were right for up to 12 processors
only; its search gave up, or asked for too many. One test for each of these defects.
"""

from itertools import pairwise

import pytest

from sojourn.decide.assign import assign
from sojourn.decide.gains import Gains
from sojourn.decide.minimise import minimise
from sojourn.decide.target import Target
from sojourn.errors import TargetBelowFloor, TooFewProcessors
from sojourn.model.network import mean_s, predict
from sojourn.model.station import station
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.load import StationLoad

mmk = station("mmk")


def chain(*services_per_s, arrivals_per_s=40.0):
    """Every root visits all operators one after the other."""
    names = [f"op{i}" for i in range(len(services_per_s))]
    return Topology(
        name="chain",
        arrivals=(Arrival(name="roots", per_s=arrivals_per_s, into=names[0]),),
        operators=tuple(
            Operator(name=name, service_s=1 / per_s, emits={after: 1.0} if after else {})
            for name, after, per_s in zip(
                names, [*names[1:], None], services_per_s, strict=True
            )
        ),
    )


def sojourn_services(erlangs, processors):
    """Return the mean sojourn, in services."""
    load = StationLoad(arrivals_per_s=erlangs, service_s=1.0)
    return 1 + mmk.wait_s(load, processors)


@pytest.mark.parametrize(
    ("processors", "erlangs", "right", "published"),
    [(13, 0.9 * 13, 1.482, 1.649), (14, 0.7 * 14, 1.037, 1.218), (20, 18, 1.275, 1.559)],
)
def test_1_thirteen_processors_and_more_do_not_overflow(processors, erlangs, right, published):
    ours = sojourn_services(erlangs, processors)
    assert ours == pytest.approx(right, abs=5e-4)
    assert ours < published


def test_2_no_sojourn_is_negative_and_a_processor_never_looks_harmful():
    assert sojourn_services(9.5, 20) == pytest.approx(1.0, abs=1e-3)  # it said -1.292
    for halves in range(1, 2 * 32):
        erlangs = halves / 2
        first = max(12, int(erlangs) + 1)
        sojourns = [sojourn_services(erlangs, k) for k in range(first, 33)]
        assert all(sojourn >= 1 for sojourn in sojourns)
        assert all(more <= fewer for fewer, more in pairwise(sojourns))


def test_3_an_operator_may_need_more_than_thirty_three_processors():
    forty_erlang = chain(2.5, arrivals_per_s=100.0)
    plan = minimise(forty_erlang, Target("mean", 0.5), model="mmk")
    assert plan.allocation == {"op0": 43}
    assert mean_s(forty_erlang, {"op0": 42}, model="mmk") > 0.5


@pytest.mark.parametrize(
    ("seconds", "allocation", "published"),
    [(0.80, (14, 21, 6), 72), (0.85, (13, 19, 6), 45)],
)
def test_4_a_plan_asks_for_no_more_than_it_takes(seconds, allocation, published):
    plan = minimise(chain(4.0, 2.5, 10.0), Target("mean", seconds), model="mmk")
    assert tuple(plan.allocation.values()) == allocation
    assert plan.processors == sum(allocation) < published


def test_5_an_idle_or_instant_operator_does_not_break_the_plan():
    busy = chain(4.0, 2.5, 10.0)
    extra = (Operator(name="idle", service_s=1.0), Operator(name="instant", service_s=0.0))
    *first, last = busy.operators
    through = Operator(name=last.name, service_s=last.service_s, emits={"instant": 1.0})
    topology = Topology(
        name="idle", arrivals=busy.arrivals, operators=(*first, through, *extra)
    )
    plan = minimise(topology, Target("mean", 0.80), model="mmk")
    assert plan.processors == 41 + 2
    assert plan.allocation["idle"] == plan.allocation["instant"] == 1
    assert predict(topology, plan.allocation, model="mmk").mean_s <= 0.80


def test_6_overload_is_said_with_what_it_takes():
    with pytest.raises(TooFewProcessors) as no:
        assign(chain(4.0, 2.5, 10.0), 32)
    assert no.value.least == {"op0": 11, "op1": 17, "op2": 5}
    assert "at least 33 are needed" in str(no.value)


def test_7_a_plan_that_needs_exactly_the_most_allowed_is_a_plan():
    two_needed = chain(1.0, arrivals_per_s=1.0)
    target = Target("mean", 1.5)
    assert minimise(two_needed, target, model="mmk", most=2).processors == 2
    assert minimise(chain(4.0, 2.5, 10.0), Target("mean", 0.8), model="mmk", most=41)


def test_8_the_floor_counts_an_operator_as_often_as_it_is_visited():
    def visited(times):
        return Topology(
            name="visited",
            arrivals=(Arrival(name="roots", per_s=1.0, into="first"),),
            operators=(
                Operator(name="first", service_s=0.1, emits={"second": times}),
                Operator(name="second", service_s=1.0),
            ),
        )

    seldom = minimise(visited(0.1), Target("mean", 0.5))  # refused, as 0.1 + 1.0 is more
    assert seldom.mean_s <= 0.5
    with pytest.raises(TargetBelowFloor) as no:  # searched for in vain
        minimise(visited(3.0), Target("mean", 2.0))
    assert no.value.floor_s == pytest.approx(3.1)


def test_9_each_processor_handed_out_is_one_step_not_a_new_search():
    """It took 16,428 evaluations of Erlang's formula, each from the first factorial on."""
    steps = 0

    class Counting:
        @staticmethod
        def waits_s(load, first):
            nonlocal steps
            for wait_s in mmk.waits_s(load, first):
                steps += 1
                yield wait_s

    topology = chain(4.0, 2.5, 10.0, arrivals_per_s=152.0)
    gains = Gains(topology, dict.fromkeys(topology.operator, Counting))
    assert gains.processors == 116
    steps_to_begin = steps
    gains.hand_out(192 - 116)
    assert gains.processors == 192
    assert steps_to_begin == 2 * 3  # each operator's wait, and the next one's
    assert steps - steps_to_begin == 76

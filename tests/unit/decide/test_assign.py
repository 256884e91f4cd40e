import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.decide.assign import assign
from sojourn.decide.gains import least_allocation
from sojourn.decide.solution import NodeSize
from sojourn.decide.target import MOST_PROCESSORS
from sojourn.errors import BadInput, BadTarget, BoundTooLow, TooFewProcessors
from sojourn.model.network import mean_s
from sojourn.model.station import names
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies

MACHINES = NodeSize(slots=5, reserved=3)


def vld(**bounds):
    """Video logo detection (DRS-15 section V), with service times of our own choice."""
    chain = {"extract": (0.50, {"match": 1}), "match": (0.55, {"aggregate": 1})}
    return Topology(
        name="vld",
        arrivals=(Arrival(name="frames", per_s=13, into="extract"),),
        operators=tuple(
            Operator(name=name, service_s=s, emits=emits, **bounds.get(name, {}))
            for name, (s, emits) in {**chain, "aggregate": (0.02, {})}.items()
        ),
    )


@pytest.mark.parametrize(
    ("processors", "best"), [(16, (7, 8, 1)), (17, (8, 8, 1)), (22, (10, 11, 1))]
)
def test_video_logo_detection_comes_out_as_published(processors, best):
    plan = assign(vld(), processors, model="mmk")
    assert tuple(plan.allocation.values()) == best
    assert plan.processors == processors


def test_a_plan_says_what_it_is():
    plan = assign(vld(), 22, model="mmk")
    assert (plan.name, plan.model, plan.least) == ("vld", "mmk", 16)
    assert plan.target is plan.nodes is None
    assert plan.mean_s == pytest.approx(mean_s(vld(), plan.allocation, model="mmk"))
    assert plan.reason == (
        "16 processors are the minimum for stability; each of the other 6 is where it "
        "shortens the mean most"
    )


def test_fewer_than_keep_up_are_refused_with_how_many_would():
    with pytest.raises(TooFewProcessors) as no:
        assign(vld(), 15)
    assert no.value.processors == 15
    assert no.value.least == {"extract": 7, "match": 8, "aggregate": 1}
    assert str(no.value) == (
        "15 processors cannot keep up; at least 16 are needed (extract=7, match=8, aggregate=1)"
    )


def test_exactly_as_many_as_keep_up_will_do():
    assert assign(vld(), 16).processors == 16


def test_operators_get_what_they_must_have_even_if_it_gains_nothing():
    plan = assign(vld(aggregate={"min_processors": 5}), 22)
    assert plan.allocation["aggregate"] == 5
    with pytest.raises(TooFewProcessors, match="at least 20 are needed"):
        assign(vld(aggregate={"min_processors": 5}), 19)


def test_a_bound_below_what_keeping_up_takes_is_named():
    with pytest.raises(BoundTooLow, match="match: max_processors is 7"):
        assign(vld(match={"max_processors": 7}), 30)


def test_what_nobody_may_have_is_left_over():
    most = {"max_processors": 9}
    plan = assign(vld(extract=most, match=most, aggregate=most), 30)
    assert set(plan.allocation.values()) == {9}
    assert plan.processors == 27
    assert plan.reason.endswith(
        "; 3 are unused, because every operator is at its max_processors"
    )


def test_a_bound_on_one_gives_the_rest_to_the_others():
    plan = assign(vld(match={"max_processors": 8}), 22)
    assert plan.allocation["match"] == 8
    assert plan.processors == 22
    assert "unused" not in plan.reason


@pytest.mark.parametrize(
    ("processors", "nodes", "used"), [(17, 4, 17), (21, 4, 17), (22, 5, 22)]
)
def test_machines_are_used_whole(processors, nodes, used):
    plan = assign(vld(), processors, nodes=MACHINES)
    assert (plan.nodes, plan.processors) == (nodes, used)
    assert plan.reason.endswith(f"; {nodes} whole nodes provide {used} of the {processors}")


@pytest.mark.parametrize(("processors", "whole"), [(16, 12), (12, 12), (1, 0)])
def test_whole_machines_too_few_to_keep_up_are_refused(processors, whole):
    with pytest.raises(TooFewProcessors) as no:
        assign(vld(), processors, nodes=MACHINES)
    assert no.value.processors == whole


@pytest.mark.parametrize("processors", [0, -1, 2.0, True, "22", None, MOST_PROCESSORS + 1])
def test_what_is_no_number_of_processors_is_refused(processors):
    with pytest.raises(BadTarget, match="processors"):
        assign(vld(), processors)


def test_a_model_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="mm1"):
        assign(vld(), 22, model="mm1")


@pytest.mark.parametrize("model", names())
@given(topology=topologies(), spare=st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_one_more_processor_never_hurts(model, topology, spare):
    least = sum(least_allocation(topology).values())
    fewer, more = (assign(topology, least + spare + k, model=model) for k in range(2))
    assert more.mean_s <= fewer.mean_s * (1 + 1e-12)
    assert all(more.allocation[name] >= k for name, k in fewer.allocation.items())


def test_a_hundred_thousand_processors_are_handed_out():
    busy = Topology(
        name="busy",
        arrivals=(Arrival(name="in", per_s=40_000, into={"a": 0.5, "b": 0.5}),),
        operators=(Operator(name="a", service_s=1.0), Operator(name="b", service_s=2.0)),
    )
    plan = assign(busy, 100_000)
    assert plan.processors == 100_000
    assert plan.allocation["a"] > 20_000
    assert plan.allocation["b"] > 40_000

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.optimize import brentq

from sojourn.decide.gains import least_allocation
from sojourn.errors import BadAllocation, UnstableStation
from sojourn.model.lattice import Lattice
from sojourn.model.network import (
    PERCENTILES,
    mean_floor_s,
    mean_s,
    percentile_s,
    predict,
    served_s,
    stations,
)
from sojourn.model.station import names, station
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.load import StationLoad
from strategies import topologies

every_model = pytest.mark.parametrize("model", names())


def entering(*operators, per_s=10.0, **arrival):
    arrivals = (Arrival(name="roots", per_s=per_s, into=operators[0].name, **arrival),)
    return Topology(name="drawn", arrivals=arrivals, operators=operators)


COUNT = Operator(name="count", service_s=0.08)
CHAIN = entering(
    Operator(name="split", service_s=0.05, emits={"count": 0.5}),
    Operator(name="count", service_s=0.1),
)


@every_model
def test_one_processor_with_random_arrivals_and_service_is_the_textbook_queue(model):
    predicted = predict(entering(COUNT), {"count": 1}, model=model)
    assert predicted.mean_s == pytest.approx(0.4)  # 1/(μ-λ) = 1/(12.5-10)
    assert predicted.std_s == pytest.approx(0.4, rel=1e-3)
    for percentile, ratio in PERCENTILES.items():
        exact_s = -0.4 * np.log(1 - ratio)
        assert predicted.percentiles_s[percentile] == pytest.approx(exact_s, rel=1e-3)


@pytest.mark.parametrize("model", ["gigk", "round_robin"])
@pytest.mark.parametrize("service_scv", [0, 0.25, 1, 4])
def test_one_processor_with_random_arrivals_waits_as_pollaczek_and_khinchine_have_it(
    model, service_scv
):
    topology = entering(replace(COUNT, service_scv=service_scv))
    waits_s = predict(topology, {"count": 1}, model=model).operators["count"].wait_s
    assert waits_s == pytest.approx(0.8 / (1 - 0.8) * 0.08 * (1 + service_scv) / 2)


@pytest.mark.parametrize("processors", [2, 3, 5, 10])
@pytest.mark.parametrize("busy", [0.5, 0.8, 0.95])
def test_random_arrivals_dealt_out_in_turn_wait_about_as_long_as_they_should(processors, busy):
    """Each queue then gets Erlang arrivals and serves exponentially: E/M/1 is known exactly."""
    load = StationLoad(arrivals_per_s=busy * processors, service_s=1.0)
    late = brentq(
        lambda root: (1 + (1 - root) / load.arrivals_per_s) ** -processors - root, 0, 1 - 1e-9
    )
    round_robin = station("round_robin")
    assert round_robin.wait_s(load, processors) == pytest.approx(late / (1 - late), rel=0.1)
    lattice = Lattice.up_to(20.0, 4096)
    wait = np.cumsum(round_robin.wait(load, processors, lattice))
    exactly = 1 - late * np.exp(-(1 - late) * (lattice.times_s[:-1] + lattice.step_s / 2))
    np.testing.assert_allclose(wait, exactly, atol=0.02)


def test_everything_said_of_an_operator_adds_up():
    predicted = predict(CHAIN, {"split": 1, "count": 2}, model="mmk")
    split, count = predicted.operators["split"], predicted.operators["count"]
    assert (split.processors, split.arrivals_per_s, split.visits) == (1, 10, 1)
    assert (count.processors, count.arrivals_per_s, count.visits) == (2, 5, 0.5)
    assert (split.utilisation, count.utilisation) == (0.5, 0.25)
    assert split.sojourn_s == pytest.approx(0.1)
    assert predicted.mean_s == split.sojourn_s + 0.5 * count.sojourn_s
    assert predicted.allocation == {"split": 1, "count": 2}
    assert predicted.processors == 3
    assert (predicted.name, predicted.model) == ("drawn", "mmk")


@given(topology=topologies(max_operators=3))
@settings(max_examples=40)
def test_where_nothing_branches_both_means_are_one(topology):
    assume(not topology.branches)
    predicted = predict(topology, least_allocation(topology))
    assert predicted.completion_mean_s == predicted.mean_s


@given(topology=topologies(max_operators=3, loops=False))
@settings(max_examples=40)
def test_the_last_record_is_done_no_later_than_all_one_after_another(topology):
    predicted = predict(topology, least_allocation(topology))
    # Siblings start mean services apart, although the one before may take longer: on a
    # processor of their own, up to a service of each is added. And times that differ ten
    # thousandfold share a lattice, and are rounded to its points.
    limit_s = predicted.mean_s + served_s(topology)
    assert predicted.completion_mean_s <= limit_s * (1 + 5e-3)


@given(topology=topologies(max_operators=3, loops=False))
@settings(max_examples=40)
def test_percentiles_rise_and_fall_with_further_processors(topology):
    least = least_allocation(topology)
    fewer = predict(topology, least).percentiles_s
    more = predict(topology, {name: k + 1 for name, k in least.items()}).percentiles_s
    assert list(fewer) == list(PERCENTILES)
    assert list(fewer.values()) == sorted(fewer.values())
    # two lattices agree to a thousandth, or a small part of the longest time
    slack_s = 2e-3 * fewer["p99"]
    assert all(more[p] <= fewer[p] * (1 + 2e-3) + slack_s for p in PERCENTILES)


@given(topology=topologies(max_operators=3))
@settings(max_examples=10)
def test_a_percentile_alone_is_that_of_the_prediction(topology):
    least = least_allocation(topology)
    predicted = predict(topology, least)
    assert {p: percentile_s(topology, least, p) for p in PERCENTILES} == predicted.percentiles_s


@given(topology=topologies(max_operators=4))
@settings(max_examples=40)
def test_the_mean_alone_is_the_mean_predicted_and_above_the_floor(topology):
    least = least_allocation(topology)
    for model in names():
        reached_s = mean_s(topology, least, model=model)
        assert reached_s >= mean_floor_s(topology) * (1 - 1e-12)
    assert predict(topology, least).mean_s == mean_s(topology, least)


def test_time_on_the_wire_is_added_at_every_hop():
    near, far = entering(COUNT), entering(replace(COUNT, transfer_s=0.25))
    here, there = (predict(topology, {"count": 2}) for topology in (near, far))
    assert there.mean_s == pytest.approx(here.mean_s + 0.25)
    assert there.operators["count"].transfer_s == 0.25
    assert there.std_s == pytest.approx(here.std_s, rel=1e-3)
    for percentile in PERCENTILES:
        later_s = there.percentiles_s[percentile] - here.percentiles_s[percentile]
        assert later_s == pytest.approx(0.25, rel=2e-3)


def test_processors_of_twice_the_speed_serve_in_half_the_time():
    fast = predict(entering(replace(COUNT, speed=2.0)), {"count": 1})
    assert fast == predict(entering(replace(COUNT, service_s=0.04)), {"count": 1})


def test_records_dealt_out_in_turn_wait_as_round_robin_has_it_whatever_the_model():
    dealt = entering(replace(COUNT, dispatch="round_robin"))
    load = dealt.loads["count"]
    for model in names():
        assert stations(dealt, model) == {"count": station("round_robin")}
        predicted = predict(dealt, {"count": 3}, model=model)
        assert predicted.operators["count"].wait_s == station("round_robin").wait_s(load, 3)


def test_one_queue_for_all_is_quicker_than_one_each():
    dealt = entering(replace(COUNT, dispatch="round_robin"))
    shared_s, dealt_s = (mean_s(t, {"count": 2}) for t in (entering(COUNT), dealt))
    assert shared_s < dealt_s


def test_regular_arrivals_wait_less():
    metronome = entering(COUNT, scv=0.0)
    assert mean_s(metronome, {"count": 1}, model="gigk") == pytest.approx(0.08 + 0.32 / 2)
    assert mean_s(metronome, {"count": 1}, model="mmk") == pytest.approx(0.08 + 0.32)


def test_an_operator_that_cannot_keep_up_is_named():
    with pytest.raises(
        UnstableStation, match="count: 1 processors cannot keep up; at least 2 are needed"
    ):
        predict(entering(replace(COUNT, service_s=0.1)), {"count": 1})


@pytest.mark.parametrize(
    ("allocation", "said"),
    [
        ({"split": 1}, "no processors for count"),
        ({}, "no processors for split, count"),
        ({"split": 1, "count": 1, "sum": 1}, "no operator 'sum'; operators are split, count"),
        ({"split": 0, "count": 1}, "split: 0 is not a valid number of processors"),
        ({"split": 1.0, "count": 1}, "split: 1.0 is not a valid number"),
        ({"split": True, "count": 1}, "split: True is not a valid number"),
        ({"split": "1", "count": 1}, "split: '1' is not a valid number"),
        ({"split": None, "count": 1}, "split: None is not a valid number"),
    ],
)
def test_an_allocation_that_does_not_fit_is_refused(allocation, said):
    for ask in (predict, mean_s):
        with pytest.raises(BadAllocation, match=said):
            ask(CHAIN, allocation)


def test_what_takes_no_time_is_done_at_once():
    predicted = predict(entering(Operator(name="pass", service_s=0.0)), {"pass": 1})
    assert predicted.mean_s == predicted.std_s == 0
    assert set(predicted.percentiles_s.values()) == {0}


@pytest.mark.parametrize("rare", [1e-7, 1e-9, 1e-12])
def test_one_root_in_millions_that_takes_long_does_not_hide_the_others(rare):
    slow = Operator(name="slow", service_s=1e-3 / rare)
    for common_s in (0.0, 0.001):
        common = Operator(name="pass", service_s=common_s, emits={"slow": rare})
        predicted = predict(entering(common, slow), {"pass": 1, "slow": 1})
        exact_s = -common_s / (1 - 10 * common_s) * np.log(0.05)
        assert predicted.percentiles_s["p95"] == pytest.approx(exact_s, rel=2e-3)


def test_a_median_of_milliseconds_does_not_drown_among_minutes():
    shares = {"quick": 0.6, "slow": 0.4}
    mixed = Topology(
        name="mixed",
        arrivals=(Arrival(name="roots", per_s=0.1, into=shares),),
        operators=(
            Operator(name="quick", service_s=0.001),
            Operator(name="slow", service_s=10.0),
        ),
    )
    predicted = predict(mixed, {"quick": 1, "slow": 1})
    # half of all are five in six of the quick ones
    assert predicted.percentiles_s["p50"] == pytest.approx(0.001 * np.log(6), rel=2e-3)
    assert predicted.percentiles_s["p99"] == pytest.approx(-10 / 0.6 * np.log(0.025), rel=2e-3)


@pytest.mark.parametrize("name", PERCENTILES)
@pytest.mark.parametrize("slow_s", [0.7, 2.7231556255273617, 31.0])
def test_a_percentile_at_which_nothing_completes_for_long_is_the_sooner(name, slow_s):
    """Whether it is just before or just after is rounding, and differs between lattices."""
    part = PERCENTILES[name]
    wait = Operator(
        name="wait", service_s=slow_s, service_scv=0, transfer_s=100 * slow_s, emits={"last": 2}
    )
    topology = Topology(
        name="split",
        arrivals=(
            Arrival(name="roots", per_s=0.01 / slow_s, into={"pass": part, "wait": 1 - part}),
        ),
        operators=(
            Operator(name="pass", service_s=0.0),
            wait,
            Operator(name="last", service_s=slow_s / 10, service_scv=3),
        ),
    )
    allocation = {"pass": 7, "wait": 1, "last": 4}
    assert percentile_s(topology, allocation, name, model="mmk") == 0


def test_a_long_tail_is_followed_to_its_end():
    bursty = replace(COUNT, service_s=0.001, service_scv=100.0)
    predicted = predict(entering(bursty), {"count": 50})
    assert predicted.std_s == pytest.approx(0.01, rel=0.01)


def test_a_seldom_visited_operator_counts_as_often_as_it_is_visited():
    seldom = entering(
        Operator(name="parse", service_s=0.01, emits={"retry": 0.1}),
        Operator(name="retry", service_s=0.5, transfer_s=0.1),
    )
    assert mean_floor_s(seldom) == pytest.approx(0.01 + 0.1 * 0.6)

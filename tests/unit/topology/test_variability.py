from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.load import FanOut, Flow, arrival_scvs
from strategies import topologies


def scvs(arrivals, operators):
    topology = Topology(
        name="t",
        arrivals=tuple(Arrival(name=f"in{i}", **one) for i, one in enumerate(arrivals)),
        operators=tuple(
            Operator(name=name, **({"service_s": 0.001} | one))
            for name, one in operators.items()
        ),
    )
    return {name: load.arrival_scv for name, load in topology.loads.items()}


def one_stream(*, scv, into="a"):
    return [{"per_s": 100, "into": into, "scv": scv}]


@pytest.mark.parametrize("scv", [0, 0.2, 1, 3.7])
def test_a_stream_enters_an_operator_as_irregular_as_it_is(scv):
    assert scvs(one_stream(scv=scv), {"a": {}}) == {"a": scv}


@pytest.mark.parametrize("scv", [0, 0.2, 1, 3.7])
def test_a_stream_leaves_an_operator_as_irregular_as_it_came(scv):
    found = scvs(one_stream(scv=scv), {"a": {"emits": {"b": 1}}, "b": {}})
    assert found == {"a": scv, "b": scv}


@given(share=st.floats(0.01, 1), scv=st.floats(1e-6, 4))
def test_shares_of_a_stream_are_drawn_by_chance(share, scv):
    into = {"a": share, "b": 1 - share}
    found = scvs(one_stream(scv=scv, into=into), {"a": {}, "b": {}})
    assert found["a"] == pytest.approx(share * scv + 1 - share)


@pytest.mark.parametrize("route", ["each", "one_of"])
@given(chance=st.floats(0.01, 1), scv=st.floats(1e-6, 4))
def test_a_stream_split_by_chance_gets_closer_to_random(route, chance, scv):
    operators = {"a": {"emits": {"b": chance}, "route": route}, "b": {}}
    assert scvs(one_stream(scv=scv), operators)["b"] == pytest.approx(chance * scv + 1 - chance)


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (2, 2 * 0.5),
        (10, 10 * 0.5),
        (8.5, 8.5 * 0.5 + 0.25 / 8.5),
        (1.2, 1.2 * 0.5 + 0.16 / 1.2),
    ],
)
def test_records_sent_at_once_arrive_in_bursts(mean, expected):
    found = scvs(one_stream(scv=0.5), {"a": {"emits": {"b": mean}}, "b": {}})
    assert found["b"] == pytest.approx(expected)


@given(chances=st.lists(st.floats(0.001, 1), min_size=2, max_size=6))
def test_random_records_that_become_several_are_a_compound_poisson_stream(chances):
    """Its variance over its mean is E[X²]/E[X], whatever X is."""
    weights = [chance / sum(chances) for chance in chances]
    first = sum(n * weight for n, weight in enumerate(weights))
    second = sum(n * n * weight for n, weight in enumerate(weights))
    sent = FanOut(mean=first, variance=second - first**2)(Flow(100, scv=1))
    assert sent.per_s == pytest.approx(100 * first)
    assert sent.scv == pytest.approx(second / first)


def test_joined_streams_count_by_their_rates():
    arrivals = [
        {"per_s": 30, "into": "a", "scv": 0.2},
        {"per_s": 10, "into": "a", "scv": 3},
        {"per_s": 0, "into": "a", "scv": 99},
    ]
    assert scvs(arrivals, {"a": {}})["a"] == pytest.approx(0.75 * 0.2 + 0.25 * 3)


def test_streams_from_outside_and_from_others_join():
    arrivals = [{"per_s": 10, "into": "a", "scv": 0}, {"per_s": 30, "into": "b", "scv": 2}]
    found = scvs(arrivals, {"a": {"emits": {"b": 3}}, "b": {}})
    assert found["b"] == pytest.approx((30 * 0 + 30 * 2) / 60)


def test_random_streams_stay_random():
    """Poisson streams split by chance and joined again are Poisson streams: exact."""
    operators = {
        "a": {"emits": {"b": 0.3, "c": 0.7}, "route": "one_of"},
        "b": {"emits": {"c": 0.5}},
        "c": {"emits": {"d": 1}},
        "d": {},
    }
    found = scvs(one_stream(scv=1, into={"a": 0.6, "b": 0.4}), operators)
    assert found == pytest.approx(dict.fromkeys("abcd", 1))


def test_what_was_measured_counts_and_is_passed_on():
    operators = {
        "a": {"arrival_scv": 3, "emits": {"b": 0.5}},
        "b": {"emits": {"c": 1}},
        "c": {},
    }
    expected = {"a": 3, "b": 2, "c": 2}
    assert scvs(one_stream(scv=0), operators) == pytest.approx(expected)


def test_a_measured_0_counts_too():
    assert scvs(one_stream(scv=4), {"a": {"arrival_scv": 0}})["a"] == 0


def test_inside_a_loop_streams_are_taken_for_random():
    operators = {"a": {"emits": {"b": 1}}, "b": {"emits": {"a": 0.5}}}
    assert scvs(one_stream(scv=0), operators) == {"a": 1, "b": 1}


def test_what_was_measured_counts_inside_a_loop():
    operators = {"a": {"emits": {"b": 1}, "arrival_scv": 3}, "b": {"emits": {"a": 0.5}}}
    assert scvs(one_stream(scv=0), operators) == {"a": 3, "b": 1}


def test_after_a_loop_streams_join_as_before_it():
    arrivals = [{"per_s": 10, "into": "a", "scv": 0}, {"per_s": 20, "into": "c", "scv": 0.25}]
    operators = {
        "a": {"emits": {"a": 0.5, "c": 1}},
        "c": {"emits": {"d": 2}},
        "d": {},
    }
    found = scvs(arrivals, operators)
    assert found["a"] == 1
    assert found["c"] == pytest.approx((20 * 1 + 20 * 0.25) / 40)
    assert found["d"] == pytest.approx(2 * found["c"])


def test_where_nothing_arrives_the_stream_is_taken_for_random():
    operators = {"a": {}, "b": {"emits": {"c": 1}}, "c": {}}
    assert scvs(one_stream(scv=0), operators) == {"a": 0, "b": 1, "c": 1}


def test_what_nothing_sends_does_not_count():
    operators = {"a": {"emits": {"c": 1}}, "b": {"arrival_scv": 9, "emits": {"c": 5}}, "c": {}}
    assert scvs(one_stream(scv=0), operators)["c"] == 0


def test_shares_that_add_up_to_a_little_more_than_1_do_not_make_a_stream_less_than_regular():
    assert scvs(one_stream(scv=0, into={"a": 1 + 5e-7}), {"a": {}})["a"] == 0


def test_an_operator_may_be_named_before_the_one_that_feeds_it():
    found = arrival_scvs(
        {"b": [Flow(10, scv=0.5)]},
        {"a": {}, "b": {"a": FanOut(mean=2, variance=0)}},
        {"a": 20, "b": 10},
        fixed={},
        order=["b", "a"],
        looped=set(),
    )
    assert found == {"b": 0.5, "a": 1.0}


@given(topology=topologies())
def test_every_operator_has_a_finite_variability(topology):
    for load in topology.loads.values():
        assert isfinite(load.arrival_scv)
        assert load.arrival_scv >= 0


@given(topology=topologies(loops=False), factor=st.floats(0.1, 10))
def test_variability_does_not_depend_on_the_unit_of_time(topology, factor):
    before = {name: load.arrival_scv for name, load in topology.loads.items()}
    after = {name: load.arrival_scv for name, load in topology.scaled(factor).loads.items()}
    assert after == pytest.approx(before)

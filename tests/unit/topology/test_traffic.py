from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sojourn.topology.traffic import components, dies_out, is_loop, loop_gain, rates
from strategies import topologies


def matrix(gains):
    return np.array([[gains[i].get(j, 0.0) for j in gains] for i in gains])


def chain(operators):
    names = [f"o{i}" for i in range(operators)]
    return {name: {after: 1.0} for name, after in pairwise(names)} | {names[-1]: {}}


@given(topology=topologies())
def test_rates_solve_the_traffic_equations(topology):
    """λ = λ_ext + Gᵀλ, here as one dense system that knows nothing of components."""
    external = np.array(list(topology.entries.values()))
    solved = np.linalg.solve(np.eye(len(external)) - matrix(topology.gains).T, external)
    found = rates(topology.entries, topology.gains)
    assert list(found.values()) == pytest.approx(solved.tolist(), rel=1e-9, abs=1e-9)


@given(topology=topologies())
def test_rates_add_up_what_arrives_after_each_number_of_hops(topology):
    """Σₙ (Gᵀ)ⁿ λ_ext: every record either came in just now, or was sent by an earlier one."""
    gains = matrix(topology.gains).T
    arriving = np.array(list(topology.entries.values()))
    total = np.zeros_like(arriving)
    for _ in range(700):
        total += arriving
        arriving = gains @ arriving
    found = rates(topology.entries, topology.gains)
    assert list(found.values()) == pytest.approx(total.tolist(), rel=1e-9, abs=1e-9)


@given(topology=topologies(), factor=st.floats(0.01, 100))
def test_rates_grow_with_what_enters(topology, factor):
    entering = {name: per_s * factor for name, per_s in topology.entries.items()}
    expected = {name: per_s * factor for name, per_s in topology.rates.items()}
    assert rates(entering, topology.gains) == pytest.approx(expected, rel=1e-9)


def test_what_nobody_sends_to_gets_what_enters():
    assert rates({"a": 3.0}, {"a": {}, "b": {}}) == {"a": 3.0, "b": 0.0}


def test_a_loop_that_nothing_reaches_carries_nothing():
    assert rates({"a": 3.0}, {"a": {}, "b": {"c": 1}, "c": {"b": 0.5}}) == {
        "a": 3,
        "b": 0,
        "c": 0,
    }


def test_two_loops_in_a_row_multiply():
    gains = {"a": {"a": 0.5, "b": 1}, "b": {"c": 1}, "c": {"b": 0.75, "d": 2}, "d": {}}
    assert rates({"a": 1.0}, gains) == pytest.approx({"a": 2, "b": 8, "c": 8, "d": 16})


def exactly(external, gains):
    """Solve the traffic equations in fractions, by Gauss and Jordan."""
    names = list(gains)
    rows = [
        [Fraction(i == j) - Fraction(gains[j].get(i, 0.0)) for j in names]
        + [Fraction(external.get(i, 0.0))]
        for i in names
    ]
    for k, _ in enumerate(names):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i, row in enumerate(rows):
            if i != k:
                rows[i] = [v - row[k] * w for v, w in zip(row, rows[k], strict=True)]
    return {name: float(row[-1]) for name, row in zip(names, rows, strict=True)}


@given(data=st.data(), size=st.integers(2, 4))
def test_rates_are_exact_beside_gains_that_are_worlds_apart(data, size):
    """A file that becomes a billion rows, one in a billion of which asks for another file."""
    names, powers = "abcd"[:size], st.integers(-9, 9).map(lambda power: 10.0**power)
    gains = {name: data.draw(st.dictionaries(st.sampled_from(names), powers)) for name in names}
    radius = loop_gain(names, gains)
    if radius > 0.9:
        factor = 0.9 / radius
        gains = {i: {j: g * factor for j, g in row.items()} for i, row in gains.items()}
    external = {name: data.draw(st.sampled_from([0.0, 1.0, 7.0])) for name in names}
    assert rates(external, gains) == pytest.approx(exactly(external, gains), rel=1e-9, abs=0)


def test_a_trickle_beside_a_flood_is_exact():
    """Solved as one dense system, the trickle d may come out wrong in the fourth digit."""
    gains = {
        "a": {"b": 1e-8, "c": 1e3},
        "b": {"d": 1e-6},
        "c": {"a": 1e-4, "c": 1e-3},
        "d": {"a": 10},
    }
    expected = exactly({"a": 1.0}, gains)
    assert rates({"a": 1.0}, gains) == pytest.approx(expected, rel=1e-12, abs=0)


def test_an_all_but_critical_loop_has_the_rate_it_should():
    assert rates({"a": 1.0}, {"a": {"a": 1 - 1e-8}})["a"] == pytest.approx(1e8, rel=1e-6)


@pytest.mark.parametrize("gain", [1.0, 1e200, 2**70])
def test_a_loop_that_was_not_found_calm_before_gives_no_finite_rate(gain):
    found = rates({"a": 1.0}, {"a": {"b": gain}, "b": {"a": gain, "c": 1}, "c": {}})
    assert not any(np.isfinite(per_s) for per_s in found.values())


def test_the_gain_of_one_operator_is_what_it_sends_to_itself():
    assert loop_gain(("a",), {"a": {"a": 0.3, "b": 7}, "b": {}}) == pytest.approx(0.3)


@pytest.mark.parametrize("length", [2, 3, 10])
def test_the_gain_of_a_ring_is_the_mean_over_one_round(length):
    """Geometric: a round multiplies by 0.5, so each hop by its n-th root."""
    ring = chain(length) | {f"o{length - 1}": {"o0": 0.5}}
    assert loop_gain(tuple(ring), ring) == pytest.approx(0.5 ** (1 / length))


@pytest.mark.parametrize(("outer", "inner"), [(0.1, 0.2), (0.5, 0.4), (0.9, 0.9)])
def test_nested_loops_add_to_each_other(outer, inner):
    gains = {"a": {"b": 1}, "b": {"a": outer, "b": inner}}
    expected = (inner + sqrt(inner**2 + 4 * outer)) / 2
    assert loop_gain(("a", "b"), gains) == pytest.approx(expected)


@given(data=st.data(), size=st.integers(1, 6), critical=st.sampled_from([1.0, 1 - 1e-9, 0.5]))
def test_a_loop_dies_out_exactly_when_its_gain_is_below_the_critical(data, size, critical):
    names = "abcdef"[:size]
    rows = st.dictionaries(st.sampled_from(names), st.floats(0.01, 1.0))
    gains = {name: data.draw(rows) for name in names}
    gain = loop_gain(names, gains)
    assume(abs(gain - critical) > 1e-9)
    assert dies_out(names, gains, critical=critical) == (gain < critical)


def test_a_loop_of_a_thousand_operators_is_settled_quickly():
    """Its eigenvalues would take seconds."""
    ring = chain(1000) | {"o999": {"o0": 0.999}}
    assert dies_out(tuple(ring), ring)
    assert not dies_out(tuple(ring), ring | {"o999": {"o0": 1.0}})


def test_absurd_gains_are_infinite_or_unknown_but_never_calm():
    gains = {i: dict.fromkeys("abc", 1e308) for i in "abc"}
    assert not loop_gain("abc", gains) < 1
    assert not dies_out("abc", gains)


def test_gains_may_be_integers_of_any_size():
    """Of such, numpy makes an array of objects, and then refuses to work with it."""
    assert loop_gain("a", {"a": {"a": 10**300}}) == pytest.approx(1e300)
    gains = {"a": {"b": 10**30}, "b": {"a": 1e-31}}
    assert rates({"a": 1.0}, gains) == pytest.approx({"a": 1 / 0.9, "b": 1e30 / 0.9})


def test_an_operator_alone_is_a_loop_only_if_it_sends_to_itself():
    gains = {"a": {"b": 1}, "b": {"b": 0.5}, "c": {"d": 1}, "d": {"c": 0.1}}
    assert not is_loop(("a",), gains)
    assert is_loop(("b",), gains)
    assert is_loop(("c", "d"), gains)


def test_components_come_in_the_order_records_flow():
    gains = {"d": {}, "c": {"d": 1}, "b": {"c": 1, "a": 1}, "a": {"b": 1}}
    assert [set(part) for part in components(gains)] == [{"a", "b"}, {"c"}, {"d"}]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_chain_may_be_longer_than_python_recurses(backwards):
    gains = chain(5000)
    given = dict(reversed(gains.items())) if backwards else gains
    assert components(given) == [(name,) for name in gains]


def test_a_ring_may_be_longer_than_python_recurses():
    gains = chain(5000)
    gains["o4999"] = {"o0": 0.5}
    (ring,) = components(gains)
    assert sorted(ring) == sorted(gains)


@st.composite
def graphs(draw):
    names = [f"o{i}" for i in range(draw(st.integers(1, 9)))]
    targets = st.dictionaries(st.sampled_from(names), st.just(1.0), max_size=4)
    return {name: draw(targets) for name in names}


def reach(gains):
    """Return whom each operator reaches in any number of hops, itself included."""
    reached = {name: {name, *targets} for name, targets in gains.items()}
    for _ in gains:
        for name in gains:
            reached[name] |= set().union(*(reached[target] for target in reached[name]))
    return reached


@given(gains=graphs())
def test_operators_that_reach_each_other_are_one_component(gains):
    reached = reach(gains)
    mutual = {
        frozenset(other for other in reached[name] if name in reached[other]) for name in gains
    }
    found = components(gains)
    assert {frozenset(part) for part in found} == mutual
    assert sorted(name for part in found for name in part) == sorted(gains)


@given(gains=graphs())
def test_no_component_sends_to_an_earlier_one(gains):
    position = {name: i for i, part in enumerate(components(gains)) for name in part}
    for name, targets in gains.items():
        assert all(position[name] <= position[target] for target in targets)


@given(gains=graphs())
def test_loops_are_where_records_can_come_back(gains):
    reached = reach(gains)
    for part in components(gains):
        back = any(part[0] in reached[target] for target in gains[part[0]])
        assert is_loop(part, gains) == back

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn import model
from sojourn.errors import EndlessLoop
from sojourn.model.completion import Completion
from sojourn.model.lattice import Lattice
from sojourn.model.network import predict, stations
from sojourn.model.station import names
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies

LATTICE = Lattice.up_to(40.0, 4096)
RATIOS = (0.5, 0.9, 0.95, 0.99)


def entering(into, *operators, per_s=1.0):
    arrival = Arrival(name="roots", per_s=per_s, into=into)
    return Topology(name="drawn", arrivals=(arrival,), operators=operators)


def completion(topology, lattice=LATTICE):
    """Return the completion with one processor each."""
    allocation = dict.fromkeys(topology.operator, 1)
    return Completion(topology, stations(topology, "mmk"), lattice)(allocation)


def mean_s(masses):
    return LATTICE.mean_s(masses)


def exponential(mean):
    """Return the distribution function that the cumulated masses stand for."""
    return 1 - np.exp(-(LATTICE.times_s[:-1] + LATTICE.step_s / 2) / mean)


def swift(name, **emits):
    """Take no time and send records on."""
    return Operator(name=name, service_s=0.0, emits=emits)


def half_busy(name, per_s=1.0, **options):
    """Stay 1/per_s seconds on average, exponentially: M/M/1 with a utilisation of a half."""
    return Operator(name=name, service_s=0.5 / per_s, **options)


def test_one_processor_with_random_arrivals_completes_exponentially():
    masses = completion(entering("a", half_busy("a")))
    np.testing.assert_allclose(np.cumsum(masses), exponential(1.0), atol=1e-5)


@pytest.mark.parametrize("ratio", RATIOS)
def test_two_in_a_row_complete_after_the_sum_of_both(ratio):
    quick = Operator(name="b", service_s=0.2)  # at 1 per second: 1/(5-1) seconds
    masses = completion(entering("a", half_busy("a", emits={"b": 1}), quick))
    reached_s = LATTICE.percentile_s(masses, ratio)
    late = (np.exp(-reached_s) - 0.25 * np.exp(-4 * reached_s)) / 0.75
    assert late == pytest.approx(1 - ratio, rel=3e-3)


def test_of_two_equal_branches_the_last_takes_half_as_long_again():
    masses = completion(entering("s", swift("s", a=1, b=1), half_busy("a"), half_busy("b")))
    assert mean_s(masses) == pytest.approx(1.5, rel=1e-4)
    np.testing.assert_allclose(np.cumsum(masses), exponential(1.0) ** 2, atol=1e-4)


def without_waiting(topology, lattice=LATTICE):
    """Return the completion with so many processors that nothing waits."""
    unlimited = dict.fromkeys(topology.operator)
    return Completion(topology, stations(topology, "mmk"), lattice)(unlimited)


def test_a_fan_out_of_two_point_three_is_two_and_at_times_three():
    masses = without_waiting(entering("s", swift("s", a=2.3), Operator(name="a", service_s=1)))
    done = exponential(1.0)
    np.testing.assert_allclose(np.cumsum(masses), done**2 * (0.7 + 0.3 * done), atol=1e-4)
    # the last of two takes 1 + 1/2 as long as one, the last of three 1 + 1/2 + 1/3
    assert mean_s(masses) == pytest.approx(0.7 * 3 / 2 + 0.3 * 11 / 6, rel=1e-4)


def test_siblings_share_one_wait_and_are_then_served_in_turn():
    """With one processor: the wait of the first, and all services one after the other."""
    masses = completion(entering("s", swift("s", a=3), half_busy("a", per_s=3.0)))
    wait_s, service_s = 1 / 6, 1 / 6
    exactly_s = wait_s + 3 * service_s
    assert exactly_s <= mean_s(masses) <= 1.07 * exactly_s


def test_idle_processors_take_as_many_siblings_as_they_are():
    """Ten on four: six turns of a quarter of a service, then the last of four."""
    topology = entering("s", swift("s", a=10), Operator(name="a", service_s=1), per_s=1e-9)
    masses = Completion(topology, stations(topology, "mmk"), LATTICE)({"s": 1, "a": 4})
    exactly_s = 6 / 4 + 1 + 1 / 2 + 1 / 3 + 1 / 4
    assert exactly_s <= mean_s(masses) <= 1.02 * exactly_s


@pytest.mark.parametrize("siblings", [2, 5, 30])
@pytest.mark.parametrize("service_scv", [0.0, 0.3, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("per_s", [0.001, 0.1])
def test_a_processor_more_never_makes_siblings_later(siblings, service_scv, per_s):
    """Searches for percentiles rely on it."""
    work = Operator(name="a", service_s=1, service_scv=service_scv)
    topology = entering("s", swift("s", a=siblings), work, per_s=per_s)
    completed = Completion(topology, stations(topology, "gigk"), LATTICE)
    least = topology.loads["a"].min_processors
    by_then = [
        np.cumsum(completed({"s": 1, "a": k})) for k in range(least, least + siblings + 2)
    ]
    for fewer, more in pairwise(by_then):
        assert np.all(more >= fewer - 1e-9)


@given(
    topology=topologies(max_operators=4),
    spare=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    which=st.integers(0, 3),
    model=st.sampled_from(names()),
)
@settings(max_examples=100)
def test_a_processor_more_never_makes_roots_later(topology, spare, which, model):
    operators = list(topology.operator)
    loads = topology.loads
    few = {n: loads[n].min_processors + k for n, k in zip(operators, spare, strict=False)}
    taker = operators[which % len(operators)]
    horizon_s = 1.3 * predict(topology, few, model=model).percentiles_s["p99"] or 1.0
    completed = Completion(topology, stations(topology, model), Lattice.up_to(horizon_s, 512))
    by_then = np.cumsum(completed(few))
    # what lies beyond the lattice comes in again at its beginning, a part in a million at most
    assert np.all(np.cumsum(completed(few | {taker: few[taker] + 1})) >= by_then - 1e-6)


def test_a_fan_out_below_one_leaves_some_without_children():
    masses = completion(entering("s", swift("s", a=0.3), half_busy("a", per_s=0.3)))
    assert mean_s(masses) == pytest.approx(0.3 / 0.3, rel=1e-4)
    assert masses[0] == pytest.approx(0.7, abs=1e-3)


def test_a_large_fan_out_waits_for_the_last_of_many():
    topology = entering("s", swift("s", a=1000), Operator(name="a", service_s=1))
    harmonic = sum(1 / n for n in range(1, 1001))
    assert mean_s(without_waiting(topology)) == pytest.approx(harmonic, rel=1e-4)


def test_one_of_several_is_a_mixture():
    choice = Operator(name="s", service_s=0.0, emits={"a": 0.25, "b": 0.5}, route="one_of")
    masses = completion(
        entering("s", choice, half_busy("a", per_s=0.25), half_busy("b", per_s=0.5))
    )
    mixed = 0.25 * exponential(4.0) + 0.5 * exponential(2.0) + 0.25
    np.testing.assert_allclose(np.cumsum(masses), mixed, atol=1e-4)


def test_roots_that_enter_in_several_places_are_a_mixture():
    shares = {"a": 0.25, "b": 0.75}
    masses = completion(
        entering(shares, half_busy("a", per_s=0.25), half_busy("b", per_s=0.75))
    )
    mixed = 0.25 * exponential(4.0) + 0.75 * exponential(4 / 3)
    np.testing.assert_allclose(np.cumsum(masses), mixed, atol=1e-4)


def test_a_loop_of_exponentials_is_exponential():
    """A geometric number of exponential times adds up to an exponential time."""
    looping = half_busy("a", per_s=4.0, emits={"a": 0.75})
    masses = completion(entering("a", looping))
    np.testing.assert_allclose(np.cumsum(masses), exponential(1.0), atol=1e-4)


def test_a_loop_that_turns_ten_thousand_times_is_exponential_still():
    looping = Operator(name="a", service_s=1e-5, emits={"a": 0.9999})
    mean = 0.1 / (1 - 1e-4)
    lattice = Lattice.up_to(16 * mean, 4096)
    masses = completion(entering("a", looping, per_s=1e-3), lattice)
    assert lattice.mean_s(masses) == pytest.approx(mean, rel=2e-3)
    assert lattice.percentile_s(masses, 0.95) == pytest.approx(-np.log(0.05) * mean, rel=5e-3)


def test_a_loop_is_solved_to_what_iterating_gives(monkeypatch):
    there = Operator(name="a", service_s=0.3, emits={"b": 1}, service_scv=0.3)
    back = Operator(
        name="b", service_s=0.1, emits={"a": 0.5, "c": 0.4}, route="one_of", transfer_s=0.2
    )
    topology = entering("a", there, back, half_busy("c", emits={"c": 0.2}))
    solved = completion(topology)
    monkeypatch.setattr(model.completion, "_MOST_SOLVED", 0)
    iterated = completion(topology)
    np.testing.assert_allclose(np.cumsum(solved), np.cumsum(iterated), atol=1e-6)


def test_a_branching_loop_that_all_but_multiplies_its_records_is_given_up(monkeypatch):
    looping = Operator(name="a", service_s=1e-4, emits={"a": 0.99, "b": 1})
    monkeypatch.setattr(model.completion, "_MOST_GENERATIONS", 50)
    with pytest.raises(EndlessLoop, match="through a still has records after 50 generations"):
        completion(entering("a", looping, Operator(name="b", service_s=1e-4)))


def test_a_loop_through_two_operators_comes_round_as_often_as_it_must():
    there = half_busy("a", per_s=2.0, emits={"b": 1})
    back = Operator(
        name="b", service_s=0.25, emits={"a": 0.5, "out": 0.5}, route="one_of", transfer_s=0.1
    )
    topology = entering("a", there, back, half_busy("out"))
    masses = completion(topology)
    assert mean_s(masses) == pytest.approx(2 * (0.5 + 0.5 + 0.1) + 1, rel=1e-4)


def test_a_loop_that_branches_satisfies_its_own_equation():
    looping = Operator(name="a", service_s=0.1, emits={"a": 0.4, "b": 1})
    topology = entering("a", looping, Operator(name="b", service_s=0.2))
    masses = completion(topology)
    leaf = completion(entering("b", Operator(name="b", service_s=0.2), per_s=1 / 0.6))
    own = completion(entering("a", Operator(name="a", service_s=0.1), per_s=1 / 0.6))
    again, last = np.cumsum(masses), np.cumsum(leaf)
    children = (0.6 + 0.4 * again) * last
    expected = LATTICE.add(own, np.diff(children, prepend=0.0))
    np.testing.assert_allclose(np.cumsum(masses), np.cumsum(expected), atol=1e-6)


def test_the_wire_delays_everything():
    here, away = half_busy("a"), half_busy("a", transfer_s=LATTICE.step_s * 50)
    np.testing.assert_allclose(
        completion(entering("a", away))[50:], completion(entering("a", here))[:-50], atol=1e-12
    )


def test_processors_without_number_leave_the_service_alone():
    topology = entering("a", half_busy("a", service_scv=0.2))
    masses = Completion(topology, stations(topology, "gigk"), LATTICE)({"a": None})
    np.testing.assert_allclose(masses, LATTICE.service(0.5, 0.2), atol=1e-12)


def test_an_operator_that_nothing_reaches_delays_nothing():
    alone = entering("a", half_busy("a", emits={"slow": 0.0}), half_busy("slow", per_s=0.01))
    np.testing.assert_allclose(
        completion(alone), completion(entering("a", half_busy("a"))), atol=1e-15
    )


def test_asking_again_gives_the_same_answer():
    topology = entering("a", half_busy("a", emits={"b": 1}), half_busy("b"))
    of = Completion(topology, stations(topology, "gigk"), LATTICE)
    first = of({"a": 2, "b": 1})
    of({"a": 1, "b": 3})
    assert np.array_equal(of({"a": 2, "b": 1}), first)

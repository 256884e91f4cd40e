"""A run from start to end: when it ends, what it leaves out, how sure it is."""

from math import inf

import pytest

from sojourn.errors import BadAllocation, BadWorkload
from sojourn.simulate.run import simulate
from sojourn.simulate.workload import Gaps, Rates, Workload
from sojourn.topology import Arrival, Operator, Topology

PAIR = Topology(
    name="pair",
    arrivals=(Arrival(name="roots", per_s=10.0, into="first"),),
    operators=(
        Operator(name="first", service_s=0.05, emits={"second": 2}),
        Operator(name="second", service_s=0.02, transfer_s=0.001),
    ),
)
ONE_EACH = {"first": 1, "second": 1}


def test_it_ends_after_so_many_roots():
    done = simulate(PAIR, ONE_EACH, roots=5000, seed=7)
    assert (done.name, done.seed, done.roots) == ("pair", 7, 5000)
    assert done.visits == pytest.approx(3 * 5000, abs=100)
    assert done.simulated_s == pytest.approx(500, rel=0.1)
    assert done.warm_up_s == pytest.approx(50, rel=0.25)
    assert done.completions.number == pytest.approx(4500, abs=100)
    assert done.wall_s > 0
    assert done.allocation == ONE_EACH


def test_it_ends_after_so_many_seconds():
    done = simulate(PAIR, ONE_EACH, duration_s=400.0)
    assert (done.simulated_s, done.warm_up_s) == (400.0, 40.0)
    assert done.roots == pytest.approx(4000, rel=0.1)
    assert done.operators["second"].arrivals_per_s == pytest.approx(20, rel=0.1)


def test_its_parts_add_up_to_its_mean():
    done = simulate(PAIR, ONE_EACH, roots=100_000)
    parts = [o.visits * o.sojourn_s for o in done.operators.values()]
    assert sum(parts) == pytest.approx(done.mean_s.value, rel=0.01)
    assert done.operators["second"].transfer_s == 0.001
    assert done.completion_mean_s.value < done.mean_s.value
    assert list(done.percentiles_s) == ["p50", "p90", "p95", "p99"]
    assert 0 < done.mean_s.half_width < 0.05 * done.mean_s.value


def test_the_same_seed_gives_the_same_answer():
    once, again, other = (
        simulate(PAIR, ONE_EACH, roots=2000, seed=seed).mean_s for seed in (3, 3, 4)
    )
    assert once == again
    assert once != other


@pytest.mark.parametrize("limits", [{"roots": 100_000}, {"duration_s": 5000.0}])
def test_each_portion_tells_how_far_it_is_and_what_completed(limits):
    parts, births_s = [], []

    def each(part, roots):
        parts.append(part)
        births_s.extend(roots["birth_s"])

    done = simulate(PAIR, ONE_EACH, **limits, each=each)
    assert parts == sorted(parts)
    assert parts[0] <= 0.4
    assert parts[-1] == pytest.approx(1.0)
    assert len(parts) >= 20
    assert len(births_s) == len(set(births_s)) == done.roots


def test_what_cannot_keep_up_is_simulated_all_the_same():
    slow = simulate(PAIR.scaled(4), ONE_EACH, duration_s=500.0)
    assert slow.operators["first"].utilisation == pytest.approx(1.0, rel=0.02)
    assert slow.mean_s.value > 30


def test_an_operator_that_nothing_reaches_did_nothing():
    idle = Topology(
        name="idle",
        arrivals=PAIR.arrivals,
        operators=(*PAIR.operators, Operator(name="third", service_s=1.0)),
    )
    third = simulate(idle, ONE_EACH | {"third": 1}, roots=500).operators["third"]
    assert (third.arrivals_per_s, third.utilisation, third.visits) == (0, 0, 0)
    assert (third.wait_s, third.service_s, third.sojourn_s) == (0, 0, 0)


def test_a_run_too_short_for_batches_is_unsure():
    done = simulate(PAIR, ONE_EACH, roots=12)
    assert done.mean_s.half_width == inf
    assert done.percentiles_s["p99"].half_width == inf


@pytest.mark.parametrize("limits", [{}, {"roots": 10, "duration_s": 10.0}])
def test_it_ends_by_one_of_roots_and_time(limits):
    with pytest.raises(BadWorkload, match="give either the number of roots or the duration"):
        simulate(PAIR, ONE_EACH, **limits)


@pytest.mark.parametrize("limits", [{"roots": 0}, {"duration_s": 0.0}, {"duration_s": 1e-9}])
def test_a_run_in_which_nothing_completes_is_refused(limits):
    with pytest.raises(BadWorkload, match="no root that arrived after the warm-up"):
        simulate(PAIR, ONE_EACH, **limits)


def test_a_run_that_is_all_one_moment_is_refused():
    """Ten roots at once, done at once: there is no time to divide by."""
    moment = Topology(
        name="moment",
        arrivals=PAIR.arrivals,
        operators=(Operator(name="first", service_s=0.0),),
    )
    workload = Workload(gaps={"roots": Gaps(shape="batches", size=10)})
    with pytest.raises(BadWorkload, match="no root that arrived after the warm-up"):
        simulate(moment, {"first": 1}, roots=10, workload=workload)


def test_a_run_ends_when_nothing_comes_any_more():
    workload = Workload(rates={"roots": Rates.steps((0, 100), (10, 0))})
    done = simulate(PAIR, {"first": 9, "second": 9}, roots=2000, workload=workload)
    assert done.roots == pytest.approx(1000, rel=0.15)
    assert done.mean_s.half_width == inf


def test_an_allocation_has_to_fit():
    with pytest.raises(BadAllocation, match="no processors for second"):
        simulate(PAIR, {"first": 1}, roots=10)
    with pytest.raises(BadAllocation, match="0 is not a valid number of processors"):
        simulate(PAIR, {"first": 1, "second": 0}, roots=10)

"""What is measured of a simulation is what was simulated."""

from math import sqrt
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.measure.aggregate import aggregate
from sojourn.measure.observed import observed
from sojourn.measure.smooth import Window
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Gaps, Workload

EXAMPLES = Path(__file__).parents[2] / "examples"
EVERY_S = 60.0


def looked_at(topology, allocation, *, times, **engine):
    """Return one observation a minute, of a simulation that has warmed up."""
    with Simulator(**engine) as running:
        running.start(topology, Plan.here(allocation))
        running.observe(EVERY_S)
        pulls = [running.observe(EVERY_S * (turn + 2)) for turn in range(times)]
    seen = [aggregate(pull, topology, every_s=EVERY_S, last_s=pull.since_s) for pull in pulls]
    assert all(one.usable for one in seen), [one.reason for one in seen]
    return seen


@pytest.fixture(scope="module")
def fpd():
    topology = sj.read_topology(EXAMPLES / "fpd.yaml")
    allocation = {"generate": 6, "detect": 13, "report": 3}
    return topology, looked_at(topology, allocation, times=5)


def test_rates_and_service_times_come_back(fpd):
    """With a loop and fan-out: within four standard errors of what the topology says."""
    topology, seen = fpd
    for one in seen:
        assert one.arrivals_per_s == pytest.approx(320, abs=4 * sqrt(320 / EVERY_S))
        for name, operator in one.operators.items():
            load = topology.loads[name]
            assert operator.arrivals_per_s == pytest.approx(load.arrivals_per_s, rel=0.05)
            error = 4 / sqrt(operator.samples)
            assert operator.service_s == pytest.approx(load.service_s, rel=error)
            assert operator.service_scv == pytest.approx(1.0, rel=4 * error)


def test_the_topology_as_measured_is_the_one_that_runs(fpd):
    topology, seen = fpd
    measured = observed(topology, Window(5)(seen))
    for name, load in measured.loads.items():
        assert load.erlangs == pytest.approx(topology.loads[name].erlangs, rel=0.05)
    plans = [sj.assign(known, 22, model="mmk").allocation for known in (measured, topology)]
    assert plans[0] == plans[1]


def test_bulks_that_enter_a_loop_are_seen_where_the_model_takes_them_for_poisson(fpd):
    topology, seen = fpd
    assert topology.loads["detect"].arrival_scv == 1
    assert observed(topology, Window(5)(seen)).loads["detect"].arrival_scv > 1.5


def test_measured_latency_agrees_with_the_simulation_itself(fpd):
    _, seen = fpd
    smoothed = Window(5)(seen)
    # simulated for long: mean 61.6 ms, completion 39.3 ms, p95 77.5 ms (docs/background)
    assert smoothed.mean_s == pytest.approx(0.0616, rel=0.06)
    assert smoothed.completions.mean_s == pytest.approx(0.0393, rel=0.05)
    assert smoothed.percentile_s(0.95) == pytest.approx(0.0775, rel=0.06)


@pytest.mark.parametrize(
    ("gaps", "scv"),
    [
        (Gaps(), 1.0),
        (Gaps(shape="uniform", low=0.4, high=1.6), 0.12),
        (Gaps(shape="batches", size=5), 5.0),
    ],
)
def test_how_irregular_arrivals_are_comes_back(gaps, scv):
    """For batches of five the counts disperse five times as much as Poisson's."""
    topology = sj.Topology(
        name="one",
        arrivals=(sj.Arrival(name="in", per_s=100, into="a"),),
        operators=(sj.Operator(name="a", service_s=0.01),),
    )
    seen = looked_at(topology, {"a": 3}, times=20, workload=Workload(gaps={"in": gaps}))
    found = [one.operators["a"].arrival_scv for one in seen]
    assert sum(found) / len(found) == pytest.approx(scv, rel=0.15)


def test_an_operator_that_cannot_keep_up_shows_its_backlog_and_hides_no_load():
    topology = sj.Topology(
        name="jam",
        arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
        operators=(
            sj.Operator(name="a", service_s=0.1, emits={"b": 2}),
            sj.Operator(name="b", service_s=0.01),
        ),
    )
    seen = looked_at(topology, {"a": 4, "b": 2}, times=3)
    backlogs = [one.operators["a"].backlog for one in seen]
    assert backlogs == sorted(backlogs)
    assert backlogs[-1] > 1000
    measured = observed(topology, Window(3)(seen))
    assert measured.rates["b"] == pytest.approx(100, rel=0.1)

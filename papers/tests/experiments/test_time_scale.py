"""What runs faster than it is described, and is told as if it did not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.decide.plan import Plan
from sojourn.measure.aggregate import aggregate
from sojourn.measure.counters import OperatorReport, ProcessorReport
from sojourn.measure.report import Pull, RootReport
from sojourn.measure.sketch import Sketch
from sojourn.model.network import mean_s
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload
from sojourn_papers.experiments.application import FPD, VLD
from sojourn_papers.experiments.papers.drs17_fig9a import BURSTS
from sojourn_papers.experiments.time_scale import as_described, sped_up, sped_up_rates

factors = st.floats(0.05, 50)


@pytest.mark.parametrize("application", [VLD, FPD, BURSTS])
@given(faster=factors)
def test_all_that_takes_time_takes_as_much_less(application, faster):
    topology = application.topology
    quick = sped_up(topology, faster)
    allocation = {name: load.min_processors + 1 for name, load in topology.loads.items()}
    as_long = faster * mean_s(quick, allocation, model="mmk")
    assert as_long == pytest.approx(mean_s(topology, allocation, model="mmk"))
    assert quick.arrivals_per_s == pytest.approx(faster * topology.arrivals_per_s)
    assert quick.visits == pytest.approx(topology.visits)


def test_the_machine_has_its_own_ways_and_cores():
    wired = replace(BURSTS.running, cores=8.0)
    quick = sped_up(wired, 6)
    assert {o.transfer_s for o in quick.operators} == {0.0}
    assert quick.cores is None


def test_rates_change_sooner_and_are_higher():
    rates = Rates(((0.0, 6.0), (60.0, 12.0)))
    for at_s in (0.0, 15.0, 60.0, 100.0):
        assert sped_up_rates(rates, 4).at(at_s / 4) == pytest.approx(4 * rates.at(at_s))


def test_every_time_is_told_as_described():
    report = ProcessorReport(
        processor="p", served=4, sampled=4, service_s=2.0, service_ss=1.0, wait_s=0.5,
        wait_ss=0.25, cpu_s=0.1, longest_service_s=0.7, memory_bytes=7,
    )  # fmt: skip
    operator = OperatorReport(
        name="a", wanted=1, running=1, processors=(report,), arrivals=(1, 3), bin_s=0.5,
        backlog=2, transfers=3, transfer_s=0.01, bytes={"a": 9},
    )  # fmt: skip
    roots = RootReport(
        entered=4, completed=2, completions=Sketch.of([1.0, 3.0]), sums=Sketch.of([2.0, 2.0])
    )
    pull = Pull(
        since_s=7.0, at_s=8.0, operators=(operator,), roots=roots, cores=2, busy_cores=0.5
    )
    told = as_described(pull, 10, zero_s=5.0)
    assert (told.since_s, told.at_s, told.cores, told.busy_cores) == (20.0, 30.0, 2, 0.5)
    (there,) = told.operators
    (counted,) = there.processors
    assert counted == replace(
        report, service_s=20.0, service_ss=100.0, wait_s=5.0, wait_ss=25.0, cpu_s=1.0,
        longest_service_s=7.0,
    )  # fmt: skip
    assert there == replace(operator, processors=(counted,), bin_s=5.0, transfer_s=0.1)
    assert (told.roots.entered, told.roots.completed) == (4, 2)
    assert (told.roots.completions.mean_s, told.roots.sums.mean_s) == (20.0, 20.0)


@pytest.mark.parametrize("faster", [0.25, 8.0])
def test_what_ran_faster_looks_as_if_it_had_not(faster):
    """The same chance on a topology and on its faster self: nobody can tell them apart."""

    def seen(topology, times):
        with Simulator(workload=Workload(), seed=3, sample_every=1) as engine:
            engine.start(topology, Plan.here(FPD.allocation(6, 13, 3)))
            pull = as_described(engine.observe(60.0 / times), times)
        return aggregate(pull, FPD.topology, every_s=60.0)

    plain, quick = seen(FPD.topology, 1.0), seen(sped_up(FPD.topology, faster), faster)
    assert quick.arrivals_per_s == pytest.approx(plain.arrivals_per_s)
    assert quick.mean_s == pytest.approx(plain.mean_s)
    p95s = [o.completions.percentile_s(0.95) for o in (plain, quick)]
    assert p95s[1] == pytest.approx(p95s[0], rel=0.005)
    for name, operator in plain.operators.items():
        same = quick.operators[name]
        assert same.service.mean_s == pytest.approx(operator.service.mean_s)
        assert same.service.scv == pytest.approx(operator.service.scv)

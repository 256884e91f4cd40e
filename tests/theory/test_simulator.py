"""The simulator against queueing theory, and against a plain simulation in Python.

Seeds are fixed, so a run is repeatable, but no outcome is: what theory says has to be within
twice the half width of the 95 % interval that the run itself gives, four standard errors.
"""

from itertools import pairwise
from math import exp, factorial, log
from random import Random

import numpy as np
import pytest
from scipy.optimize import brentq

from sojourn.model.network import PERCENTILES
from sojourn.simulate.run import simulate
from sojourn.simulate.simulation import Simulation
from sojourn.simulate.workload import Gaps, Keys, Rates, Service, Workload
from sojourn.topology import Arrival, Operator, Topology
from theory import tree_simulation
from theory.networks import JACKSON
from theory.tree_simulation import estimate

MARGIN = 2.0
# Percentiles of a run are read off buckets that are 0.4 % wide.
BUCKET = 0.003


def topology(*operators, per_s=1.0, scv=1.0):
    """Roots enter at the first operator."""
    arrival = Arrival(name="roots", per_s=per_s, into=operators[0].name, scv=scv)
    return Topology(name="simulated", arrivals=(arrival,), operators=operators)


def one(busy, processors=1, **how):
    """One operator, reached by one record in a second."""
    return topology(Operator(name="work", service_s=busy * processors, **how))


def run(simulated, *, roots=400_000, seed=1, workload=None, **processors):
    return simulate(simulated, processors, roots=roots, seed=seed, workload=workload)


def assert_agrees(interval, exact, *, allowance=0.0, telling=0.06):
    """Assert that *exact* is near the measured value, and that this says something."""
    assert interval.half_width < telling * interval.value
    off = abs(interval.value - exact)
    assert off <= MARGIN * interval.half_width + allowance * exact, (interval, exact)


def assert_percentiles(done, distribution):
    """Assert that as many completions lie below each percentile as it says."""
    for name, ratio in PERCENTILES.items():
        exact_s = brentq(lambda t, ratio=ratio: distribution(t) - ratio, 0.0, 1e6)
        assert_agrees(done.percentiles_s[name], exact_s, allowance=BUCKET, telling=0.1)


def erlang_c(erlangs, processors):
    """Return the chance to wait, from the sum as textbooks have it."""
    full = erlangs**processors / factorial(processors) / (1 - erlangs / processors)
    return full / (sum(erlangs**i / factorial(i) for i in range(processors)) + full)


# One station.


@pytest.mark.parametrize("busy", [0.3, 0.6, 0.9])
def test_one_processor_is_the_textbook_queue(busy):
    done = run(one(busy), work=1, roots=1_000_000)
    stay_s = busy / (1 - busy)
    assert_agrees(done.mean_s, stay_s)
    assert_agrees(done.completion_mean_s, stay_s)
    assert_agrees(done.std_s, stay_s, telling=0.12)
    assert_percentiles(done, lambda t: 1 - exp(-t / stay_s))


@pytest.mark.parametrize(
    ("processors", "busy"), [(2, 0.5), (3, 0.9), (10, 0.8), (40, 0.9), (100, 0.7)]
)
def test_many_processors_wait_as_erlang_says(processors, busy):
    done = run(one(busy, processors), work=processors, roots=800_000)
    service_s = busy * processors
    wait_s = erlang_c(service_s, processors) * service_s / (processors - service_s)
    assert_agrees(done.mean_s, wait_s + service_s)
    work = done.operators["work"]
    assert work.wait_s == pytest.approx(wait_s, rel=0.08, abs=1e-3)
    assert work.utilisation == pytest.approx(busy, rel=0.01)
    assert work.service_s == pytest.approx(service_s, rel=0.01)


MEASURED_S = (0.1, 0.1, 0.2, 0.4, 0.4, 0.4, 0.7, 3.0)


@pytest.mark.parametrize(
    ("shape", "scv"),
    [
        ("auto", 0.0),
        ("auto", 0.3),
        ("constant", 1.0),
        ("exponential", 0.5),
        ("gamma", 0.2),
        ("gamma", 3.0),
        ("lognormal", 0.5),
        ("lognormal", 2.0),
        ("hyperexponential", 1.0),
        ("hyperexponential", 6.0),
        ("measured", 1.0),
    ],
)
def test_the_wait_for_one_processor_is_pollaczek_and_khinchines(shape, scv):
    """The mean wait depends on mean and scv of the service time alone, so it checks both."""
    times_s = MEASURED_S if shape == "measured" else ()
    workload = Workload(service={"work": Service(shape=shape, times_s=times_s)})
    done = run(one(0.7, service_scv=scv), work=1, workload=workload, roots=1_000_000, seed=2)
    own = {
        "constant": 0.0,
        "exponential": 1.0,
        "measured": float(np.var(MEASURED_S) / np.mean(MEASURED_S) ** 2),
    }
    wait_s = 0.7 * 0.7 / 0.3 * (1 + own.get(shape, scv)) / 2
    assert_agrees(done.mean_s, 0.7 + wait_s)
    assert done.operators["work"].service_s == pytest.approx(0.7, rel=0.02)


def test_a_lognormal_service_has_the_percentiles_of_one():
    """Where nothing waits, completion is the service time."""
    workload = Workload(service={"work": Service(shape="lognormal")})
    never_waits = one(0.01, 50, service_scv=2.0)
    done = run(never_waits, work=50, workload=workload)
    spread = log(3.0)
    for name, normal in {"p50": 0.0, "p90": 1.281552, "p99": 2.326348}.items():
        exact_s = 0.5 * exp(normal * spread**0.5 - spread / 2)
        assert_agrees(done.percentiles_s[name], exact_s, allowance=BUCKET)


# Dispatch.


@pytest.mark.parametrize("processors", [2, 5])
def test_dealt_out_in_turn_each_processor_is_the_textbook_queue(processors):
    """Every k-th of a Poisson stream is Erlang-k, and E_k/M/1 has an exact answer."""
    service_s = 0.8 * processors
    busy = brentq(lambda b: (1 + (1 - b) / service_s) ** -processors - b, 0.0, 1 - 1e-9)
    dealt = one(0.8, processors, dispatch="round_robin")
    done = run(dealt, work=processors, roots=1_000_000, seed=3)
    stay_s = service_s / (1 - busy)
    assert_agrees(done.mean_s, stay_s)
    assert_percentiles(done, lambda t: 1 - exp(-t / stay_s))


def test_the_shortest_queue_is_better_than_turns_and_worse_than_one_queue():
    means = [
        run(one(0.85, 4), work=4, workload=Workload(dispatch={"work": how}), seed=4).mean_s
        for how in ("shared", "shortest", "round_robin", "by_key")
    ]
    for better, worse in pairwise(means):
        assert better.value + better.half_width < worse.value - worse.half_width


@pytest.mark.parametrize("zipf", [0.0, 0.9])
def test_each_processor_gets_the_weight_of_its_keys(zipf):
    """Each then is a queue of its own, reached by a Poisson stream: records thinned by key."""
    processors, keys = 5, Keys(number=60, zipf=zipf)
    shares = np.zeros(processors)
    for key, weight in enumerate(keys.weights):
        shares[key * 2654435761 % 2**32 % processors] += weight
    simulated = one(0.4, processors)
    workload = Workload(dispatch={"work": "by_key"}, keys={"work": keys})
    world = Simulation(simulated, {"work": processors}, workload=workload, seed=5)
    for _ in world.advance(most_roots=200_000):
        pass
    served = world.processors("work")["served"]
    spread = 4 * np.sqrt(shares * (1 - shares) * served.sum())
    assert np.all(np.abs(served - shares * served.sum()) < spread)
    done = run(simulated, work=processors, workload=workload, roots=1_000_000, seed=5)
    assert shares.max() * 0.4 * processors < 1
    assert_agrees(done.mean_s, sum(shares / (1 / (0.4 * processors) - shares)), telling=0.1)


# Networks.


def test_a_tandem_has_hypoexponential_percentiles():
    """A record's stays at two successive stations are independent (Reich's theorem)."""
    tandem = topology(
        Operator(name="first", service_s=0.5, emits={"second": 1}),
        Operator(name="second", service_s=0.75),
    )
    done = run(tandem, first=1, second=1, roots=1_000_000)
    slow, fast = 1 / 0.75 - 1, 1 / 0.5 - 1
    assert_agrees(done.completion_mean_s, 1 / slow + 1 / fast)
    assert_agrees(done.std_s, (slow**-2 + fast**-2) ** 0.5, telling=0.1)
    assert_percentiles(
        done, lambda t: 1 - (fast * exp(-slow * t) - slow * exp(-fast * t)) / (fast - slow)
    )


def test_a_network_with_loop_and_split_is_jacksons():
    """Two streams enter, records overtake, wait on the wire, and come back."""
    processors = {"parse": 1, "check": 2, "store": 1}
    done = run(JACKSON, **processors, roots=800_000, seed=6)
    # parse = 0.6 + 0.3 check, check = 0.4 + 0.6 parse + 0.1 check
    check_per_s = (0.4 + 0.6 * 0.6) / (1 - 0.1 - 0.6 * 0.3)
    parse_per_s = 0.6 + 0.3 * check_per_s
    per_s = {
        "parse": parse_per_s,
        "check": check_per_s,
        "store": 0.4 * parse_per_s + 0.5 * check_per_s,
    }
    service_s = {"parse": 0.6, "check": 1.0, "store": 0.7}
    mean_s = 0.0
    for name, wire_s in {"parse": 0.0, "check": 0.4, "store": 0.1}.items():
        erlangs, k = per_s[name] * service_s[name], processors[name]
        stay_s = service_s[name] * (1 + erlang_c(erlangs, k) / (k - erlangs))
        mean_s += per_s[name] * (wire_s + stay_s)
        found = done.operators[name]
        assert found.arrivals_per_s == pytest.approx(per_s[name], rel=0.01)
        assert found.visits == pytest.approx(per_s[name], rel=0.01)
        assert found.utilisation == pytest.approx(erlangs / k, rel=0.02)
        assert found.sojourn_s == pytest.approx(wire_s + stay_s, rel=0.05)
    assert_agrees(done.mean_s, mean_s)
    assert_agrees(done.completion_mean_s, mean_s)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("route", ["each", "one_of"])
def test_each_target_gets_its_mean_number(route, spread):
    emits = {"a": 0.5, "b": 0.2} if route == "one_of" else {"a": 2.3, "b": 1.0}
    split = topology(
        Operator(name="split", service_s=0.0, route=route, emits=emits),
        Operator(name="a", service_s=0.0),
        Operator(name="b", service_s=0.0),
    )
    workload = Workload(spread=spread)
    done = run(split, split=1, a=1, b=1, workload=workload, roots=200_000, seed=7)
    for name, mean in emits.items():
        assert done.operators[name].visits == pytest.approx(mean, rel=0.02)


def test_copies_that_are_spread_wait_longer_than_those_that_are_not():
    simulated = topology(
        Operator(name="split", service_s=0.1, emits={"work": 3.0}),
        Operator(name="work", service_s=0.2),
    )
    even, spread = (
        run(simulated, split=1, work=1, workload=Workload(spread=how)).mean_s
        for how in (False, True)
    )
    assert spread.value - spread.half_width > even.value + even.half_width


def test_constant_times_add_up_wire_and_speed():
    """Three copies at two processors: the last starts when the first is done."""
    constant = {"service_scv": 0.0}
    metronome = topology(
        Operator(
            name="split", service_s=0.6, speed=2, transfer_s=0.05, emits={"work": 3}, **constant
        ),
        Operator(name="work", service_s=0.2, transfer_s=0.1, **constant),
        scv=0.0,
    )
    done = run(metronome, split=1, work=2, roots=1000)
    assert done.completion_mean_s.value == pytest.approx(0.05 + 0.3 + 0.1 + 2 * 0.2)
    assert done.mean_s.value == pytest.approx(0.35 + 0.3 + 0.3 + 0.5)
    assert done.completion_mean_s.half_width == pytest.approx(0.0, abs=1e-9)


FAN_OUT = topology(
    Operator(name="split", service_s=0.4, transfer_s=0.1, emits={"work": 2.5}),
    Operator(name="work", service_s=1.1, service_scv=0.5, emits={"join": 1}),
    Operator(name="join", service_s=0.25),
)
DIAMOND = topology(
    Operator(name="split", service_s=0.4, emits={"left": 1, "right": 1}),
    Operator(name="left", service_s=1.4, dispatch="round_robin", emits={"join": 1}),
    Operator(name="right", service_s=1.4, service_scv=2.0, emits={"join": 1}),
    Operator(name="join", service_s=0.35, service_scv=0.0),
    scv=0.5,
)
LOOP = topology(
    Operator(name="work", service_s=0.26, emits={"check": 1}),
    Operator(name="check", service_s=0.5, transfer_s=0.05, emits={"work": 0.6}),
)


@pytest.mark.parametrize(
    ("simulated", "processors"),
    [
        (FAN_OUT, {"split": 1, "work": 4, "join": 1}),
        (DIAMOND, {"split": 1, "left": 2, "right": 2, "join": 1}),
        (LOOP, {"work": 1, "check": 2}),
        (JACKSON, {"parse": 1, "check": 2, "store": 1}),
    ],
    ids=["fan-out", "diamond", "loop", "jackson"],
)
def test_a_plain_simulation_in_python_finds_the_same(simulated, processors):
    done = run(simulated, **processors, seed=8)
    plain = tree_simulation.simulate(simulated, processors, roots=100_000, random=Random(9))
    statistics = {
        "mean_s": (done.mean_s, plain.total_s, np.mean),
        "completion_mean_s": (done.completion_mean_s, plain.completion_s, np.mean),
        "std_s": (done.std_s, plain.completion_s, np.std),
    }
    for name, ratio in PERCENTILES.items():
        quantile = lambda times, ratio=ratio: np.quantile(times, ratio)  # noqa: E731
        statistics[name] = (done.percentiles_s[name], plain.completion_s, quantile)
    for name, (found, times_s, statistic) in statistics.items():
        other = estimate(times_s, statistic, confidence=0.999)
        slack = MARGIN * found.half_width + other.half_width + BUCKET * found.value
        assert other.half_width < 0.12 * other.value, name
        assert abs(found.value - other.value) <= slack, name


# Arrivals.


def births_s(gaps=None, rates=None, *, per_s=1000.0, until_s=200.0, seed=10, scv=1.0):
    """Return when roots come; nothing else happens to them."""
    simulated = topology(Operator(name="end", service_s=0.0), per_s=per_s, scv=scv)
    workload = Workload(
        gaps={} if gaps is None else {"roots": gaps},
        rates={} if rates is None else {"roots": rates},
    )
    world = Simulation(simulated, {"end": 1}, workload=workload, seed=seed)
    times_s = [done["birth_s"].copy() for done in world.advance(until_s=until_s)]
    return np.concatenate(times_s)


def dispersion(times_s, *, bin_s, until_s=200.0):
    """Return variance over mean of the numbers in bins: 1 of a Poisson stream."""
    counts = np.histogram(times_s, np.arange(0.0, until_s + bin_s / 2, bin_s))[0]
    return float(np.var(counts) / np.mean(counts))


@pytest.mark.parametrize("scv", [0.0, 0.3, 1.0, 4.0])
def test_gaps_have_the_mean_and_the_scv_of_the_arrival(scv):
    gaps_s = np.diff(births_s(scv=scv))
    assert np.mean(gaps_s) == pytest.approx(1e-3, rel=0.02)
    assert np.var(gaps_s) / np.mean(gaps_s) ** 2 == pytest.approx(scv, rel=0.05, abs=1e-9)


def test_uniform_gaps_lie_where_they_are_said_to():
    gaps_s = np.diff(births_s(Gaps(shape="uniform", low=0.5, high=1.5)))
    assert np.min(gaps_s) >= 0.5e-3 - 1e-9
    assert np.max(gaps_s) <= 1.5e-3 + 1e-9
    assert np.mean(gaps_s) == pytest.approx(1e-3, rel=0.005)
    assert np.var(gaps_s) / np.mean(gaps_s) ** 2 == pytest.approx(1 / 12, rel=0.02)


def test_uniform_gaps_keep_the_mean_of_the_arrival_whatever_their_bounds():
    times_s = births_s(Gaps(shape="uniform", low=1.0, high=5.0))
    assert len(times_s) == pytest.approx(200_000, rel=0.01)


def test_bursts_have_the_mean_rate_and_the_dispersion_of_an_interrupted_stream():
    """Of a stream that is on at rate r, counts vary by r over the rates of switching."""
    on_s, off_s, bin_s = 0.02, 0.03, 0.5
    times_s = births_s(Gaps(shape="on_off", on_s=on_s, off_s=off_s), until_s=2000.0)
    assert len(times_s) == pytest.approx(2_000_000, rel=0.02)
    switch_per_s = 1 / on_s + 1 / off_s
    on_per_s = 1000.0 * (on_s + off_s) / on_s
    correlated = 1 - (1 - exp(-switch_per_s * bin_s)) / (switch_per_s * bin_s)
    expected = 1 + 2 * on_per_s / on_s / switch_per_s**2 * correlated
    found = dispersion(times_s, bin_s=bin_s, until_s=2000.0)
    assert found == pytest.approx(expected, rel=4 * (2 / 4000) ** 0.5)


def test_batches_come_whole_and_at_the_rate_of_the_arrival():
    times_s = births_s(Gaps(shape="batches", size=20))
    sizes = np.unique(times_s, return_counts=True)[1]
    assert np.all(sizes == 20)
    assert len(times_s) == pytest.approx(200_000, rel=0.05)
    assert dispersion(times_s, bin_s=0.5) == pytest.approx(20, rel=4 * (2 / 400) ** 0.5)


@pytest.mark.parametrize(
    "rates",
    [
        Rates.steps((0, 500), (10, 2000), (25.5, 100), (40, 1000)),
        Rates(((0.0, 0.0), (20.0, 3000.0), (35.0, 0.0), (40.0, 0.0), (50.0, 800.0))),
    ],
    ids=["steps", "ramps"],
)
def test_numbers_per_second_are_poisson_around_a_rate_that_changes(rates):
    counts = np.histogram(births_s(rates=rates, until_s=60.0), np.arange(61))[0]
    parts = (np.arange(1000) + 0.5) / 1000
    expected = np.array([np.mean([rates.at(s + part) for part in parts]) for s in range(60)])
    assert np.all(counts[expected == 0] == 0)
    some = expected > 0
    off = (counts[some] - expected[some]) / np.sqrt(expected[some])
    assert np.all(np.abs(off) < 4.5)
    assert np.mean(off**2) == pytest.approx(1.0, abs=4 * (2 / len(off)) ** 0.5)


def test_nothing_comes_while_the_rate_is_0():
    times_s = births_s(rates=Rates.steps((0, 1000), (10, 0), (20, 1000), (30, 0)))
    assert not np.any((times_s > 10) & (times_s < 20))
    assert np.max(times_s) < 30
    assert len(times_s) == pytest.approx(20_000, rel=0.04)
    assert len(births_s(rates=Rates(((0.0, 0.0),)))) == 0


def test_the_wildest_gaps_keep_to_a_rate_that_changes():
    """At such an scv every other gap is too short for a number above 0."""
    rates = Rates.steps((0, 100_000), (1, 0), (2, 100_000), (3, 0), (4, 100_000))
    times_s = births_s(rates=rates, scv=1000.0, until_s=20.0)
    assert np.all(np.diff(times_s) >= 0)
    assert not np.any((times_s > 1) & (times_s < 2))
    assert not np.any((times_s > 3) & (times_s < 4))


def test_a_ramp_from_0_lets_a_gap_of_0_come_at_once():
    times_s = births_s(rates=Rates(((0.0, 0.0), (5.0, 1000.0))), scv=1000.0, until_s=10.0)
    assert np.all(np.diff(times_s) >= 0)


def test_bursts_of_a_stream_that_is_silent_do_no_harm():
    silent = Topology(
        name="silent",
        arrivals=(
            Arrival(name="some", per_s=1.0, into="work"),
            Arrival(name="none", per_s=0.0, into="work"),
        ),
        operators=(Operator(name="work", service_s=0.5),),
    )
    workload = Workload(gaps={"none": Gaps(shape="on_off")})
    assert_agrees(run(silent, work=1, workload=workload).mean_s, 1.0)

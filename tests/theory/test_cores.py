"""Cores that records share, against birth-death processes solved number by number."""

import random
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sojourn as sj
from sojourn.queueing.erlang import delay_probability
from sojourn.queueing.sharing import stretch

demands = st.floats(1e-3, 30)
cores = st.floats(0.2, 32)
processors = st.integers(1, 200)


def present(demand, cores, most=20_000):
    """Return the distribution of records that are there: each gets a core, or a share."""
    weights = np.concatenate(
        ([0.0], np.cumsum(np.log(demand / np.minimum(np.arange(1, most), cores))))
    )
    masses = np.exp(weights - weights.max())
    return masses / masses.sum()


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("busy", [0.1, 0.5, 0.8, 0.97])
def test_without_a_limit_it_is_the_sojourn_of_mmc_over_its_service(cores, busy):
    demand = busy * cores
    masses = present(demand, cores)
    by_little = float(masses @ np.arange(masses.size)) / demand
    assert stretch(demand, cores) == pytest.approx(by_little, rel=1e-6)
    assert stretch(demand, cores) == pytest.approx(
        1 + delay_probability(demand, cores) / (cores - demand)
    )


@pytest.mark.parametrize("cores", [1, 2, 8])
@pytest.mark.parametrize("busy", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("more", [0, 1, 3, 20])
def test_with_a_limit_it_counts_those_who_have_a_processor(cores, busy, more):
    """Those present are as many as before, and only so many of them compute."""
    demand, limit = busy * cores, cores + more
    masses = present(demand, cores)
    served = float(masses @ np.minimum(np.arange(masses.size), limit))
    assert stretch(demand, cores, limit) == pytest.approx(served / demand, rel=1e-6)


def test_one_core_is_a_queue_of_one():
    assert stretch(0.8, 1) == pytest.approx(1 / (1 - 0.8))


@given(demand=demands, cores=cores, processors=processors | st.just(inf))
def test_sharing_never_makes_anything_faster(demand, cores, processors):
    found = stretch(demand, cores, processors)
    assert found >= 1
    assert found <= max(1.0, processors / cores) * (1 + 1e-9)


@given(demand=demands, more=st.floats(1, 3), cores=cores, processors=processors)
def test_more_load_makes_computing_longer(demand, more, cores, processors):
    before, after = (stretch(demand * part, cores, processors) for part in (1, more))
    assert after >= before * (1 - 1e-9)


@given(demand=demands, cores=cores, more=st.floats(1, 3), processors=processors | st.just(inf))
def test_more_cores_make_computing_shorter(demand, cores, more, processors):
    before, after = (stretch(demand, cores * part, processors) for part in (1, more))
    assert after <= before * (1 + 1e-9)


@given(demand=demands, cores=cores, processors=processors, more=st.integers(1, 50))
def test_more_processors_share_more_up_to_the_sojourn_of_mmc(demand, cores, processors, more):
    fewer, many = (stretch(demand, cores, k) for k in (processors, processors + more))
    assert fewer <= many * (1 + 1e-9)
    assert many <= stretch(demand, cores) * (1 + 1e-9)


@given(cores=cores, processors=processors)
def test_cores_that_do_not_keep_up_are_shared_by_all_processors(cores, processors):
    assert stretch(cores, cores) == stretch(2 * cores, cores) == inf
    assert stretch(2 * cores, cores, processors) == pytest.approx(max(1, processors / cores))


@given(demand=demands, cores=cores, processors=processors)
def test_processors_are_never_all_busy_while_cores_keep_up(demand, cores, processors):
    """What cores can carry, as many processors can: sharing does not make an overload."""
    assume(demand < min(cores, processors) * (1 - 1e-9))
    assert demand * stretch(demand, cores, processors) <= processors


# -- two operators on two cores ---------------------------------------------------------------

PARSE_S, FETCH_WAITS_S, FETCH_S, CORES = 0.06, 0.18, 0.02, 2


def pair(per_s):
    """Return an operator that computes, and one that mostly waits."""
    scv = (FETCH_WAITS_S**2 + FETCH_S**2) / (FETCH_WAITS_S + FETCH_S) ** 2
    return sj.Topology(
        name="pair",
        arrivals=(sj.Arrival(name="in", per_s=per_s, into="parse"),),
        operators=(
            sj.Operator(name="parse", service_s=PARSE_S, cpu_s=PARSE_S, emits={"fetch": 1}),
            sj.Operator(
                name="fetch",
                service_s=FETCH_WAITS_S + FETCH_S,
                cpu_s=FETCH_S,
                service_scv=scv,
            ),
        ),
        cores=CORES,
    )


def simulated_s(per_s, parses, fetches, *, jumps=300_000):
    """Return the mean sojourn of the pair, every time exponential: a jump process."""
    rng = random.Random(1)
    parsing = waiting = computing = queued = 0
    total_s = area = 0.0
    for jump in range(jumps):
        served = min(parsing, parses)
        share = min(1.0, CORES / max(1, served + computing))
        parsed, waited = served * share / PARSE_S, waiting / FETCH_WAITS_S
        rates = (per_s, parsed, waited, computing * share / FETCH_S)
        lasted_s = rng.expovariate(sum(rates))
        if jump > jumps // 10:
            total_s += lasted_s
            area += lasted_s * (parsing + queued + waiting + computing)
        what = rng.choices(range(4), rates)[0]
        if what == 0:
            parsing += 1
        elif what == 1:
            parsing, queued = parsing - 1, queued + 1
        elif what == 2:
            waiting, computing = waiting - 1, computing + 1
        else:
            computing -= 1
        if queued and waiting + computing < fetches:
            queued, waiting = queued - 1, waiting + 1
    return area / total_s / per_s


@pytest.mark.parametrize(
    ("per_s", "parses", "fetches", "off"),
    [(14, 2, 5, 0.05), (14, 6, 8, 0.05), (20, 3, 6, 0.15), (20, 6, 8, 0.15), (24, 6, 8, 0.4)],
)
def test_operators_that_share_cores_take_about_as_long_as_is_said(per_s, parses, fetches, off):
    """Too little is said, because a burst finds both the processors and the cores busy."""
    allocation = {"parse": parses, "fetch": fetches}
    truth_s = simulated_s(per_s, parses, fetches)
    said_s = sj.predict(pair(per_s), allocation).mean_s
    alone_s = sj.predict(replace(pair(per_s), cores=None), allocation).mean_s
    assert said_s == pytest.approx(truth_s, rel=off)
    assert abs(said_s - truth_s) < 0.5 * abs(alone_s - truth_s)

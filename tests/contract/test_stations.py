"""What every station model has to hold, so that plans may rely on any of them.

With `--model package.module:name` it is tested on that one.
"""

import inspect
from itertools import islice, pairwise, product
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.errors import BadInput
from sojourn.model.lattice import Lattice
from sojourn.model.station import names, station
from sojourn.topology.load import StationLoad
from strategies import loads

# Loads of all kinds: hardly any and a lot, exactly full and almost, regular and in bursts.
hard_loads = st.builds(
    lambda erlangs, short, **load: StationLoad(arrivals_per_s=erlangs - short, **load),
    erlangs=st.floats(0.01, 200) | st.integers(1, 100).map(float),
    short=st.just(0.0) | st.floats(1e-9, 0.009),
    service_s=st.just(1.0),
    # as in a topology: 0, or not so small that a wait cannot be told from 0
    arrival_scv=st.sampled_from([0.0, 1.0]) | st.floats(1e-18, 50),
    service_scv=st.sampled_from([0.0, 1.0]) | st.floats(1e-18, 20),
)
further = st.integers(0, 40)


def pytest_generate_tests(metafunc):
    """Test every model in the folder, or those from outside that were named."""
    if "model" in metafunc.fixturenames:
        every = metafunc.config.getoption("model") or names()
        metafunc.parametrize("model", [station(name) for name in every], ids=every)


def first_waits_s(model, load, number=60):
    return list(islice(model.waits_s(load, load.min_processors), number))


def sojourn(model, load, processors, lattice):
    return lattice.add(model.wait(load, processors, lattice), model.service(load, lattice))


def covering(model, load, processors, points=4096):
    """Return a lattice that leaves out next to nothing of the sojourn, and the masses on it."""
    horizon_s = 8 * (model.wait_s(load, processors) + load.service_s) or 1.0
    while True:
        lattice = Lattice.up_to(horizon_s, points)
        masses = sojourn(model, load, processors, lattice)
        if masses.sum() > 1 - 1e-11:
            return lattice, masses
        horizon_s *= 2


@pytest.mark.parametrize("name", names())
def test_a_model_of_ours_is_the_functions_of_its_file(name):
    model = station(name)
    functions = inspect.getmembers(model, inspect.isfunction)
    public = [each for each, _ in functions if not each.startswith("_")]
    assert public == ["service", "wait", "wait_s", "waits_s"]


@given(load=loads | hard_loads)
@settings(max_examples=200)
def test_the_wait_falls_with_each_further_processor(model, load):
    for fewer, more in pairwise(first_waits_s(model, load)):
        assert more < fewer or more == fewer == 0


@given(load=loads | hard_loads)
@settings(max_examples=300)
def test_each_further_processor_gains_less(model, load):
    """Handing out by the largest gain is optimal only because gains shrink."""
    waits_s = first_waits_s(model, load)
    for one, two, three in zip(waits_s, waits_s[1:], waits_s[2:], strict=False):
        assert one - two >= two - three - 1e-12 * one


def test_gains_shrink_however_bursty_the_arrivals_and_the_service_are(model):
    """A correction that sets in suddenly, as arrivals become regular, makes gains grow."""
    erlangs = (0.01, 0.1, 0.5, 0.999999, 1, 1.5, 3.7, 9.99, 10, 31.6, 99.5, 199.9)
    arrival_scvs = (0, 0.1, 0.5, 1, 1.5, 2.7, 4, 6, 10, 17, 29.9, 50)
    service_scvs = (0, 1e-3, 0.1, 0.5, 1, 4, 20)
    for arrivals_per_s, a, s in product(erlangs, arrival_scvs, service_scvs):
        load = StationLoad(
            arrivals_per_s=arrivals_per_s, service_s=1.0, arrival_scv=a, service_scv=s
        )
        waits_s = np.array(first_waits_s(model, load, 70))
        gains_s = -np.diff(waits_s)
        assert np.all(np.diff(gains_s) <= 1e-12 * waits_s[:-2]), load


@given(load=loads | hard_loads, spare=further)
def test_no_wait_is_negative(model, load, spare):
    assert model.wait_s(load, load.min_processors + spare) >= 0


@given(load=loads | hard_loads, spare=further, power=st.integers(-12, 12))
def test_the_unit_of_time_does_not_matter(model, load, spare, power):
    """Units apart by a power of two, so that the load itself does not round to another."""
    unit, processors = 2.0**power, load.min_processors + spare
    scaled = StationLoad(
        arrivals_per_s=load.arrivals_per_s / unit,
        service_s=load.service_s * unit,
        arrival_scv=load.arrival_scv,
        service_scv=load.service_scv,
    )
    wait_s = model.wait_s(load, processors)
    assert model.wait_s(scaled, processors) == pytest.approx(wait_s * unit, rel=1e-12)
    lattice = Lattice.up_to(3 * (wait_s + load.service_s) or 1.0, 64)
    np.testing.assert_allclose(
        sojourn(model, scaled, processors, Lattice(lattice.step_s * unit, 64)),
        sojourn(model, load, processors, lattice),
        atol=1e-12,
    )


@given(load=loads | hard_loads, spare=further)
def test_waits_one_by_one_are_the_waits_asked_for_singly(model, load, spare):
    first = load.min_processors + spare
    for processors, wait_s in enumerate(islice(model.waits_s(load, first), 30), first):
        assert wait_s == pytest.approx(model.wait_s(load, processors), rel=1e-10, abs=1e-290)


@given(load=loads | hard_loads, spare=st.integers(0, 6))
@settings(max_examples=60)
def test_the_mean_sojourn_is_the_wait_and_the_service(model, load, spare):
    processors = load.min_processors + spare
    lattice, masses = covering(model, load, processors)
    expected_s = model.wait_s(load, processors) + load.service_s
    assert lattice.mean_s(masses) == pytest.approx(expected_s, rel=1e-6)


@given(load=loads | hard_loads, horizon=st.floats(0.1, 100))
def test_masses_are_probabilities(model, load, horizon):
    wait_s = model.wait_s(load, load.min_processors)
    lattice = Lattice.up_to(horizon * (wait_s + load.service_s) or 1.0, 512)
    for masses in (
        sojourn(model, load, load.min_processors, lattice),
        model.service(load, lattice),
    ):
        assert masses.shape == (512,)
        assert masses.min() >= -1e-12
        assert masses.sum() <= 1 + 1e-9


@given(load=loads | hard_loads, horizon=st.sampled_from([1.0, 3.0, 30.0]))
@settings(max_examples=150)
def test_no_part_of_the_tail_grows_with_a_further_processor(model, load, horizon):
    """Searches for percentiles conclude from it what an operator needs in any case."""
    first = load.min_processors
    lattice = Lattice.up_to(horizon * (model.wait_s(load, first) + load.service_s) or 1.0, 512)
    sojourns = (sojourn(model, load, first + k, lattice) for k in range(15))
    for fewer, more in pairwise(np.cumsum(masses) for masses in sojourns):
        assert np.all(more >= fewer - 1e-9)


@given(load=loads | hard_loads)
def test_with_processors_enough_nothing_is_left_but_service(model, load):
    lattice = Lattice.up_to(5 * load.service_s or 1.0, 256)
    masses = sojourn(model, load, 100_000, lattice)
    np.testing.assert_allclose(masses, model.service(load, lattice), atol=1e-3)


def test_an_operator_that_nothing_reaches_makes_nobody_wait(model):
    idle = StationLoad(arrivals_per_s=0.0, service_s=0.5)
    assert first_waits_s(model, idle, 3) == [0, 0, 0]
    lattice, masses = covering(model, idle, 1)
    assert lattice.mean_s(masses) == pytest.approx(0.5)


def test_service_that_takes_no_time_makes_nobody_wait(model):
    swift = StationLoad(arrivals_per_s=1000.0, service_s=0.0)
    assert first_waits_s(model, swift, 3) == [0, 0, 0]
    masses = sojourn(model, swift, 1, Lattice.up_to(1.0, 64))
    assert masses[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("erlangs", "processors"),
    [(1e5, 100_001), (1e5, 101_000), (1e5, 1_000_000), (999_999.5, 1_000_000), (3, 1_000_000)],
)
def test_a_million_processors_take_a_moment(model, erlangs, processors):
    load, lattice = (
        StationLoad(arrivals_per_s=erlangs, service_s=1.0),
        Lattice.up_to(10.0, 512),
    )
    started = perf_counter()
    waits_s = list(islice(model.waits_s(load, processors), 100))
    masses = sojourn(model, load, processors, lattice)
    assert perf_counter() - started < 1
    assert all(more <= fewer for fewer, more in pairwise(waits_s))
    assert 0 < masses.sum() <= 1 + 1e-9


@given(load=loads | hard_loads, spare=further)
def test_the_same_question_gets_the_same_answer(model, load, spare):
    processors, lattice = load.min_processors + spare, Lattice.up_to(1.0, 64)
    assert model.wait_s(load, processors) == model.wait_s(load, processors)
    one, other = (sojourn(model, load, processors, lattice) for _ in range(2))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("name", ["mm1", "base", "", ".", "..gigk", ".gigk", "ours.queue"])
def test_a_model_that_is_not_there_is_refused_with_those_that_are(name):
    with pytest.raises(BadInput, match=f"write one of {', '.join(names())}"):
        station(name)


def test_a_model_of_ones_own_is_named_by_its_module():
    assert station("sojourn.model.station.mmk") is station("mmk")


def test_what_has_not_all_functions_is_no_model():
    with pytest.raises(BadInput, match="math:pi is not a station model: it lacks service"):
        station("math:pi")

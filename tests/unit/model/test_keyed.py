"""The station of an operator with a hottest key: what plans rely on, and its limits."""

from dataclasses import replace
from itertools import islice, pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.model.keyed import Keyed
from sojourn.model.lattice import Lattice
from sojourn.model.station import gigk, mmk
from sojourn.topology.load import StationLoad
from strategies import loads

models = pytest.mark.parametrize("model", [mmk, gigk], ids=["mmk", "gigk"])
# The part of all records that has the key, or of the time that it keeps a processor busy.
drawn = given(load=loads, part=st.floats(1e-6, 1.0))


def keyed(model, load, part):
    return Keyed(model, part * min(1.0, 0.99 / max(load.erlangs, 1e-9)))


def first_waits_s(station, load, number=30):
    return list(islice(station.waits_s(load, load.min_processors), number))


@models
@drawn
@settings(max_examples=300)
def test_each_further_processor_helps_less(model, load, part):
    """Handing out by the largest gain is optimal only because gains shrink."""
    waits_s = first_waits_s(keyed(model, load, part), load)
    gains_s = [one - two for one, two in pairwise(waits_s)]
    assert min(gains_s) >= 0
    for gain_s, next_s in pairwise(gains_s):
        assert gain_s >= next_s - 1e-12 * waits_s[0]


@models
@drawn
@settings(max_examples=100)
def test_no_part_of_the_tail_grows_with_a_further_processor(model, load, part):
    station, first = keyed(model, load, part), load.min_processors
    lattice = Lattice.up_to(5 * (station.wait_s(load, first) + load.service_s) or 1.0, 512)
    waits = [np.cumsum(station.wait(load, first + k, lattice)) for k in range(8)]
    unlimited = station.both(load, None, lattice)
    waits.append(np.cumsum((1 - station.part) * unlimited[0] + station.part * unlimited[1]))
    for fewer, more in pairwise(waits):
        assert np.all(more >= fewer - 1e-9)


@models
@given(load=loads, part=st.floats(1e-6, 1.0), spare=st.integers(0, 6))
@settings(max_examples=100)
def test_the_mean_of_the_distribution_is_the_wait(model, load, part, spare):
    station, processors = keyed(model, load, part), load.min_processors + spare
    wait_s = station.wait_s(load, processors)
    horizon_s = 30 * (wait_s + load.service_s) or 1.0
    while True:
        lattice = Lattice.up_to(horizon_s, 4096)
        masses = station.wait(load, processors, lattice)
        if masses.sum() > 1 - 1e-11:
            break
        horizon_s *= 2
    assert lattice.mean_s(masses) == pytest.approx(wait_s, rel=1e-6, abs=1e-6 * load.service_s)


@models
@drawn
def test_one_processor_is_a_single_server_whatever_the_keys(model, load, part):
    light = replace(load, arrivals_per_s=load.arrivals_per_s / max(1.0, 1.1 * load.erlangs))
    assert Keyed(model, part).wait_s(light, 1) == model.wait_s(light, 1)


@models
@given(load=loads, spare=st.integers(0, 6))
def test_without_a_frequent_key_it_is_the_plain_model(model, load, spare):
    processors = load.min_processors + spare
    rare, plain = Keyed(model, 1e-12), model.wait_s(load, processors)
    assert rare.wait_s(load, processors) == pytest.approx(plain, rel=1e-9, abs=1e-9)


@models
def test_if_all_records_have_the_key_further_processors_do_nothing(model):
    load = StationLoad(arrivals_per_s=0.8, service_s=1.0)
    assert first_waits_s(Keyed(model, 1.0), load, 4) == pytest.approx([4.0] * 4)


@models
def test_a_key_that_is_too_much_for_a_processor_waits_for_ever(model):
    load = StationLoad(arrivals_per_s=4.0, service_s=1.0)
    assert Keyed(model, 0.25).wait_s(load, 5) == inf
    assert Keyed(model, 0.24).wait_s(load, 5) < inf

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given

from sojourn.topology.load import StationLoad
from strategies import loads


def test_erlangs_are_the_processors_kept_busy():
    assert StationLoad(arrivals_per_s=13, service_s=0.55).erlangs == pytest.approx(7.15)


@pytest.mark.parametrize(("arrivals_per_s", "least"), [(0, 1), (3.9, 4), (4, 5), (4.1, 5)])
def test_exactly_busy_processors_do_not_keep_up(arrivals_per_s, least):
    assert StationLoad(arrivals_per_s=arrivals_per_s, service_s=1).min_processors == least


@given(load=loads)
def test_the_fewest_processors_keep_up_and_one_fewer_does_not(load):
    assert load.min_processors - 1 <= load.erlangs < load.min_processors


def test_streams_and_services_are_taken_for_random_unless_said_otherwise():
    load = StationLoad(arrivals_per_s=1, service_s=1)
    assert (load.arrival_scv, load.service_scv) == (1, 1)


def test_a_load_does_not_change():
    load = StationLoad(arrivals_per_s=1, service_s=1)
    with pytest.raises(FrozenInstanceError):
        load.service_s = 2

import sys

import pytest

from live_engine import launch
from sojourn.errors import BadInput, EngineError
from sojourn.service.engines import launcher, names
from sojourn.simulate.real_time import RealTimeSimulator
from sojourn.simulate.real_time import launch as simulator


def test_engines_are_found_by_their_names(tmp_path):
    assert names() == ("spark", "simulator")
    assert launcher("simulator") is simulator
    made = launcher("simulator")(None, "vld.yaml", None, tmp_path, print)
    assert isinstance(made, RealTimeSimulator)


def test_one_from_outside_is_named_by_its_module():
    assert launcher("live_engine:launch") is launch


def test_a_module_from_outside_has_its_function_by_name():
    assert launcher("sojourn.simulate.real_time") is simulator


@pytest.mark.parametrize("name", ["sojourn.errors", "live_engine:__doc__"])
def test_what_makes_no_engine_is_refused(name):
    with pytest.raises(BadInput, match="is not callable; name a function"):
        launcher(name)


@pytest.mark.parametrize("name", ["flink", "", "no.such:engine", "live_engine:none", ".x:y"])
def test_one_that_is_not_there_is_refused_with_those_that_are(name):
    with pytest.raises(BadInput, match=r"write one of spark, simulator, or package"):
        launcher(name)


def test_what_is_to_be_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sojourn.simulate.real_time", None)
    with pytest.raises(EngineError, match=r"running on simulator needs .* sojourn\[simulate\]"):
        launcher("simulator")

"""Topologies written as files: what is read back is the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn as sj
from sojourn.errors import BadFile, SojournError
from sojourn.topology.file import parse_topology, topology_text
from strategies import topologies

NAMES = st.text(min_size=1, max_size=8).filter(
    lambda name: name == name.strip() and name.isprintable() and not set(name) & set(",=:")
)


@given(topologies())
def test_what_is_read_back_is_equal_and_gives_the_same_plan(topology):
    again = parse_topology(topology_text(topology))
    assert again == topology
    least = sum(max(load.min_processors, topology.operator[name].min_processors)
                for name, load in topology.loads.items())  # fmt: skip
    assert _plan(again, least + 3) == _plan(topology, least + 3)


def _plan(topology, processors):
    try:
        return sj.assign(topology, processors).allocation
    except SojournError as error:
        return str(error)


@given(NAMES, NAMES, st.floats(1e-18, 1e18), st.none() | st.floats(0.5, 64))
def test_any_name_and_any_number_is_written_so_that_it_is_read_back(
    name, arrival, per_s, cores
):
    topology = sj.Topology(
        name=name,
        arrivals=(sj.Arrival(name=arrival, per_s=per_s, into={name: 1.0}),),
        operators=(sj.Operator(name=name, service_s=1e-18, cpu_s=0.0),),
        cores=cores,
    )
    assert parse_topology(topology_text(topology)) == topology


@pytest.mark.parametrize(
    "name", ["null", "True", "~", "1e3", ".5", "# a", "- a", "a # b", "é{"]
)
def test_names_that_mean_something_in_yaml_stay_names(name):
    topology = sj.Topology(
        name=name,
        arrivals=(sj.Arrival(name=name, per_s=1, into=name),),
        operators=(sj.Operator(name=name, service_s=0.1),),
    )
    assert parse_topology(topology_text(topology)) == topology


@pytest.mark.parametrize("file", ["made.yaml", "made.json"])
def test_a_file_is_written_in_the_format_of_its_name(tmp_path, file):
    topology = sj.Topology(
        name="made",
        arrivals=(sj.Arrival(name="in", per_s=np.float64(2.5), into="a"),),
        operators=(sj.Operator(name="a", service_s=np.float64(0.1), max_processors=9),),
    )
    sj.write_topology(topology, tmp_path / file, remarks=["by hand"])
    text = (tmp_path / file).read_text()
    assert sj.read_topology(tmp_path / file) == topology
    assert text.startswith("{" if file.endswith("json") else "# by hand\nformat: 1\n")


def test_what_is_so_anyway_is_left_out():
    vld = parse_topology(
        "{format: 1, name: vld, arrivals: {f: {per_s: 13, into: e}},"
        " operators: {e: {service_s: 0.5, emits: {m: 1}}, m: {service_s: 2.0}}}"
    )
    assert topology_text(replace(vld, cores=4)) == (
        "format: 1\nname: vld\narrivals:\n  f: {per_s: 13, into: e}\n"
        "operators:\n  e: {service_s: 0.5, emits: {m: 1}}\n  m: {service_s: 2.0}\ncores: 4\n"
    )


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    vld = parse_topology(
        "{format: 1, name: v, arrivals: {f: {per_s: 1, into: e}},"
        " operators: {e: {service_s: 1}}}"
    )
    with pytest.raises(BadFile, match=r"cannot be written: No such file.*; check the path"):
        sj.write_topology(vld, tmp_path / "nowhere" / "v.yaml")

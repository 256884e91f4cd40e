"""The load of `sojourn run`, divided among the sources of what runs."""

from math import inf

import pytest

import sojourn as sj
from sojourn.cli.options.load import OfferedLoad
from sojourn.errors import BadApplication
from sojourn.simulate.workload import Rates
from sojourn.topology.file import write_topology

POINTS = ((0.0, 20.0), (60.0, 40.0))
LOAD = OfferedLoad(rates={}, trace=Rates(POINTS))


def two_sources(**declared):
    app = sj.App("two")
    sources = [app.source(name, schema="line string", **declared) for name in ("left", "right")]

    @app.operator(reads=sources, emits="line string")
    def same(_source, line):
        yield (line,)

    app.sink(same)
    return app


def test_sources_of_an_application_share_a_trace_equally():
    app = two_sources(samples=lambda _seed: iter([("a line",)]))
    halved = tuple((at_s, per_s / 2) for at_s, per_s in POINTS)
    assert LOAD.by_source(app, "two:app") == {"left": halved, "right": halved}


def test_a_source_without_samples_is_refused_before_anything_starts():
    with pytest.raises(BadApplication, match="it has no samples; give"):
        LOAD.by_source(two_sources(), "two:app")


def test_sources_of_a_topology_file_share_a_trace_in_proportion_to_their_rates(tmp_path):
    file = tmp_path / "two.yaml"
    arrivals = [sj.Arrival(name=name, per_s=n, into="a") for name, n in (("x", 3), ("y", 1))]
    topology = sj.Topology(
        name="two", arrivals=tuple(arrivals), operators=(sj.Operator(name="a", service_s=0.1),)
    )
    write_topology(topology, file)
    shared = LOAD.by_source(sj.App("two"), str(file))
    assert {name: points[0] for name, points in shared.items()} == {
        "x": (0.0, 15.0),
        "y": (0.0, 5.0),
    }


def test_without_a_trace_nothing_is_sent_and_there_is_no_end():
    none = OfferedLoad(rates={}, trace=None)
    assert (none.by_source(two_sources(), "two:app"), none.lasts_s) == ({}, inf)
    assert LOAD.lasts_s == 60.0

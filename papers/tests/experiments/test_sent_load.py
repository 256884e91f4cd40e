"""The load of an experiment as records that are really sent."""

import pytest

from sojourn.app.waiting_app import stand_in
from sojourn.errors import BadWorkload
from sojourn.simulate.workload import Gaps, Rates, Service, Workload
from sojourn.spark.driver.load.offered_load import Load
from sojourn.topology import Arrival, Operator, Topology
from sojourn_papers.experiments import experiment
from sojourn_papers.experiments.application import VLD
from sojourn_papers.experiments.sent_load import LEAD_S, Offered, sources


def offered(workload, faster=6.0, topology=VLD.topology):
    return tuple(sources(stand_in(topology), topology, workload, faster))


def test_rates_are_those_of_the_workload_after_a_lead_at_the_first():
    workload = Workload(rates={"video-1": Rates.steps((0, 5), (60, 10))})
    (source,) = offered(workload)
    assert source.topic == "vld.video-1"
    at_s = LEAD_S + 10.0
    assert source.points == ((0.0, 30.0), (LEAD_S, 30.0), (at_s, 30.0), (at_s, 60.0))


def test_without_rates_the_topology_says_how_much_comes():
    (source,) = offered(Workload())
    assert {per_s for _, per_s in source.points} == {6 * 13.0}


def test_what_is_shared_out_comes_in_parts():
    lines = Arrival(name="lines", per_s=8, into={"a": 0.75, "b": 0.25}, scv=0)
    operators = tuple(Operator(name=name, service_s=0.01) for name in "ab")
    topology = Topology(name="two", arrivals=(lines,), operators=operators)
    first, second = offered(Workload(), 2.0, topology)
    assert (first.topic, second.topic) == ("two.lines-a", "two.lines-b")
    assert (first.points[0][1], second.points[0][1]) == (12.0, 4.0)
    assert (first.gaps, second.gaps) == (0.25, 0.75)


def test_uniform_gaps_vary_as_much():
    application = experiment("drs15-fig10").application
    for source in offered(application.workload(0, 1), topology=application.topology):
        assert source.gaps == pytest.approx(0.284, abs=0.001)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Workload(gaps={"video-1": Gaps(shape="batches", size=3)}), "video-1: batches cannot"),
        (
            Workload(service={"match": Service(shape="lognormal")}),
            "match: lognormal service times are not supported",
        ),
        (Workload(spread=True), "spread is not supported"),
    ],
)
def test_what_cannot_be_sent_is_refused(workload, said):
    with pytest.raises(BadWorkload, match=said):
        offered(workload)


def test_it_is_known_when_the_first_record_comes():
    load = Load(servers="nowhere:9", sources=offered(Workload()), seed=5)
    (source,) = load.sources
    assert Offered(load).first_s == next(load.arrivals(source)) < LEAD_S
    silent = replace_points(load, ((0.0, 0.0), (LEAD_S, 0.0), (LEAD_S, 9.0)))
    with pytest.raises(BadWorkload, match="no record in the first 2 s"):
        _ = Offered(silent).first_s


def test_before_it_begins_the_first_rate_goes_on():
    workload = Workload(rates={"video-1": Rates.steps((0, 5), (1, 10))})
    load = Load(servers="nowhere:9", sources=offered(workload))
    assert [s.points for s in Offered(load).steady.sources] == [((0.0, 30.0),)]


def replace_points(load, points):
    (source,) = load.sources
    silent = type(source)(topic=source.topic, points=points, gaps=source.gaps)
    return Load(servers=load.servers, sources=(silent,), seed=load.seed)

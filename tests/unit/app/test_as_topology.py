import pytest

import sojourn as sj
from sojourn.errors import BadApplication, BadInput, BadTopology


def pass_on(a):
    yield (a,)


def pass_either(stream, record):
    yield stream, record


def kept(a):
    assert a


@pytest.fixture
def app():
    return sj.App("app")


@pytest.fixture
def first(app):
    return app.source("first", schema="a int")


def test_hints_become_the_topology(app, first):
    cut = app.operator(
        reads=first, emits="a int", name="cut", service_s=0.01, service_scv=0.5, sends=8.5
    )(pass_on)
    app.operator(reads=cut, service_s=0.002, min_processors=2, max_processors=5)(kept)
    assert app.topology({"first": 100}) == sj.Topology(
        name="app",
        arrivals=(sj.Arrival(name="first", per_s=100, into="cut"),),
        operators=(
            sj.Operator(name="cut", service_s=0.01, service_scv=0.5, emits={"kept": 8.5}),
            sj.Operator(name="kept", service_s=0.002, min_processors=2, max_processors=5),
        ),
    )


def test_a_stream_counts_for_each_that_reads_it_and_once_for_all_processors(app, first):
    cut = app.operator(reads=first, emits="a int", name="cut", service_s=0.01, sends=3)(pass_on)
    app.operator(reads=cut, name="one", service_s=0.01)(kept)
    app.operator(reads=cut.by("a"), name="two", service_s=0.01)(kept)
    app.operator(reads=cut.broadcast(), name="three", service_s=0.01)(kept)
    rates = app.topology({"first": 10}).rates
    assert rates == {"cut": 10, "one": 30, "two": 30, "three": 30}


def test_a_source_counts_for_each_that_reads_it(app, first):
    app.operator(reads=first, name="one", service_s=0.01)(kept)
    app.operator(reads=first, name="two", service_s=0.01)(kept)
    topology = app.topology({"first": 10})
    assert [arrival.name for arrival in topology.arrivals] == ["first to one", "first to two"]
    assert topology.rates == {"one": 10, "two": 10}


def test_a_join_gets_what_all_its_streams_have(app, first):
    second = app.source("second", schema="a int, b int")
    cut = app.operator(
        reads=first, name="cut", emits={"x": "a int", "y": "a int"}, service_s=0.01,
        sends={"x": 2, "y": 0.5},
    )(pass_on)  # fmt: skip
    app.operator(
        reads=[cut["x"], cut["y"], second], name="join", emits={"out": "a int"}, service_s=0.01
    )(pass_either)
    assert app.topology({"first": 10, "second": 7}).rates == {"cut": 10, "join": 32}


def test_loops_are_followed_as_often_as_their_gain_says(app, first):
    again = app.stream("again", schema="a int")
    app.operator(
        reads=[first, again],
        emits={"again": again},
        name="crawl",
        service_s=0.01,
        sends={"again": 0.75},
    )(pass_either)
    assert app.topology({"first": 10}).rates["crawl"] == pytest.approx(40)


def test_a_loop_that_never_ends_is_refused(app, first):
    again = app.stream("again", schema="a int")
    app.operator(reads=[first, again], emits={"again": again}, name="crawl", service_s=0.01)(
        pass_either
    )
    with pytest.raises(BadTopology, match=r"operators\.crawl"):
        app.topology({"first": 10})


def test_what_was_measured_comes_before_hints(app, first):
    app.operator(reads=first, emits="a int", name="cut", service_s=0.01)(pass_on)
    app.project("more", reads=app.operators["cut"], columns={"b": "a + 1"})
    measured = {
        "cut": sj.Hints(service_s=0.02, sends={"cut": 4}),
        "more": sj.Hints(service_s=0.001, service_scv=2),
    }
    topology = app.topology({"first": 10}, measured=measured)
    assert topology.operator["cut"].service_s == 0.02
    assert topology.operator["more"].service_scv == 2
    assert topology.rates == {"cut": 10, "more": 40}


@pytest.mark.parametrize(
    ("rates", "measured", "problem"),
    [
        ({"first": 10}, {}, "operators.cut.service_s: the service time is not known"),
        ({}, {}, "rates.first: the rate is missing"),
        ({"frst": 10}, {}, "rates.frst: there is no source 'frst'; write first"),
        ({"first": 1}, {"x": sj.Hints()}, "measured.x: there is no operator 'x'; write cut"),
        (
            {"first": 1},
            {"cut": sj.Hints(sends={"x": 1})},
            "operators.cut.sends: it does not write a",
        ),
        ({"first": 1}, {"cut": sj.Hints(service_s=-1)}, "operators.cut.service_s: -1 is neg"),
        ({"first": -1}, {"cut": sj.Hints(service_s=1)}, "arrivals.first.per_s: -1 is negat"),
    ],
)
def test_what_is_missing_or_wrong_is_named(app, first, rates, measured, problem):
    app.operator(reads=first, emits="a int", name="cut")(pass_on)
    with pytest.raises(BadInput) as caught:
        app.topology(rates, measured=measured)
    assert str(caught.value).startswith(problem)


def test_an_application_in_pieces_has_no_topology(app):
    app.source("first", schema="a int")
    with pytest.raises(BadApplication, match=r"sources\.first: no operator reads it"):
        app.topology({"first": 10})

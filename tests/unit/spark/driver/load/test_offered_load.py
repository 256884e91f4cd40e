import json
import math
from itertools import islice, pairwise, repeat, takewhile
from pathlib import Path
from random import Random
from statistics import fmean, variance

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.app.loading import load
from sojourn.errors import BadApplication, BadInput, BadRecord, BadWorkload
from sojourn.simulate.workload import Rates
from sojourn.spark.driver.load.offered_load import (
    Load,
    Source,
    arrivals_s,
    drawn_gaps,
    load_sources,
    messages,
    payload,
)
from sojourn.spark.wire.headers import BLOB

ADDRESS = "unit.spark.sampled:app"
VLD = str(Path(__file__).parents[5] / "examples/vld.yaml")
POINTS = ((0.0, 5.0),)
STEADY = {"topic": "lines", "points": ((0, 5),)}


def area(points, until_s):
    """Return how many records are due until then."""
    total = sum(
        (a + b) / 2 * (end_s - start_s)
        for (start_s, a), (end_s, b) in pairwise(points)
        if end_s <= until_s
    )
    rates = Rates(points)
    for (start_s, a), (end_s, _) in pairwise(points):
        if start_s <= until_s < end_s:
            return total + (a + rates.at(until_s)) / 2 * (until_s - start_s)
    return total + points[-1][1] * (until_s - points[-1][0])


@st.composite
def changing(draw):
    rates = st.just(0.0) | st.floats(0.01, 100)
    steps = draw(st.lists(st.tuples(st.floats(0.1, 50), rates), max_size=5))
    at_s, points = 0.0, [(0.0, draw(rates))]
    for after_s, per_s in steps:
        at_s += draw(st.sampled_from([0.0, after_s]))
        points.append((at_s, per_s))
    return tuple(points)


@given(changing())
def test_the_nth_record_of_constant_gaps_is_due_when_n_are(points):
    due_s = list(islice(arrivals_s(points, repeat(1.0)), 200))
    assert due_s == sorted(due_s)
    for number, at_s in enumerate(due_s, 1):
        # a rate that is next to nothing leaves room for rounding, in time
        assert area(points, at_s * (1 - 1e-9)) - 1e-6 <= number
        assert number <= area(points, at_s * (1 + 1e-9)) + 1e-6


@pytest.mark.parametrize("scv", [0.25, 1, 4])
def test_gaps_have_the_mean_and_scv_that_were_asked_for(scv):
    number = 100_000
    due_s = list(islice(arrivals_s(((0, 50),), drawn_gaps(scv, Random(7))), number))
    gaps = [b - a for a, b in pairwise(due_s)]
    mean = fmean(gaps)
    assert mean == pytest.approx(1 / 50, rel=4 * math.sqrt(scv / number))
    assert variance(gaps) / mean**2 == pytest.approx(scv, rel=0.1)


def test_a_rate_that_rises_brings_more_in_its_second_half():
    due_s = list(
        takewhile(
            lambda s: s < 100,
            arrivals_s(((0, 0), (100, 200)), drawn_gaps("poisson", Random(3))),
        )
    )
    late = sum(at_s >= 50 for at_s in due_s)
    assert len(due_s) == pytest.approx(10_000, abs=400)
    assert late == pytest.approx(7_500, abs=350)


def test_after_a_rate_of_nothing_records_come_again():
    points = Rates.steps((0, 1), (2.5, 0), (10, 2)).points
    assert list(islice(arrivals_s(points, repeat(1.0)), 4)) == [1, 2, 10.25, 10.75]


def test_a_rate_that_stays_at_nothing_is_the_end():
    points = Rates.steps((0, 1), (2.5, 0)).points
    assert list(arrivals_s(points, drawn_gaps(1, Random(1)))) == list(
        arrivals_s(points, drawn_gaps(1, Random(1)))
    )
    assert list(arrivals_s(((0, 0),), repeat(1.0))) == []


def test_the_same_seed_gives_the_same_times_and_topics_differ():
    sources = tuple(Source(topic=topic, points=((0, 9),)) for topic in "ab")
    load, other = (
        Load(servers="a:1", sources=sources, lasts_s=9, seed=seed) for seed in (1, 2)
    )
    times = [list(one.arrivals(source)) for one in (load, other) for source in sources]
    assert len({tuple(one) for one in times}) == 4
    assert list(load.arrivals(sources[0])) == times[0]
    assert all(0 <= at_s < 9 for one in times for at_s in one)


def test_without_an_end_records_come_until_it_is_stopped():
    source = Source(topic="a", points=((0, 1),), gaps="constant")
    load = Load(servers="a:1", sources=(source,))
    assert list(islice(load.arrivals(source), 1000))[-1] == 1000


def test_a_load_comes_through_json_as_it_is():
    rates = Rates.steps((0, 6), (360, 12))
    load = Load(
        servers="a:1,b:2",
        sources=(
            Source(topic="frames", points=rates.points, gaps=0.12, size_bytes=4096),
            Source(topic="marks", points=((0, 1),), gaps="constant"),
        ),
        lasts_s=720,
        kafka={"acks": "1"},
    )
    assert msgspec.json.decode(msgspec.json.encode(load), type=Load) == load
    assert [source.gaps for source in load.sources] == [0.12, "constant"]


@pytest.mark.parametrize("size_bytes", [None, 0, 40, 5000])
def test_a_payload_is_json_and_as_long_as_it_shall_be(size_bytes):
    text = payload(123, size_bytes)
    assert json.loads(text)["seed"] == 123
    assert ("pad" in json.loads(text)) == (size_bytes is not None)
    assert len(text) == size_bytes or (size_bytes or 0) < 40


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"points": ()}, "lines: no rate at 0 s; begin with"),
        ({"points": ((1, 5),)}, "no rate at 0 s"),
        ({"points": ((0, -1),)}, "the rate at 0 s is -1 per second; write 0 or more"),
        ({"points": ((0, 1), (2, 1), (1, 1))}, "the points are not in order of time"),
        ({"gaps": -1}, "the scv of gaps is -1"),
        ({"at_once": 0}, "0 records at once; write 1 or more"),
    ],
)
def test_a_source_that_cannot_be_is_refused(source, said):
    with pytest.raises(BadWorkload, match=said):
        Source(**(STEADY | source))


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ({"sources": ()}, "there are no topics; name each once"),
        ({"sources": (Source(**STEADY),) * 2}, "the topics are lines, lines; name each once"),
        ({"lasts_s": -1}, "lasts_s is -1; write 0 or more"),
    ],
)
def test_a_load_that_cannot_be_is_refused(load, said):
    with pytest.raises(BadWorkload, match=said):
        Load(**({"servers": "a:1", "sources": (Source(**STEADY),)} | load))


def test_what_is_no_topic_is_refused():
    with pytest.raises(BadInput, match="'a b' is not a topic name"):
        Source(topic="a b", points=((0, 1),))


def test_samples_are_written_as_the_source_reads_them():
    assert list(islice(messages(f"{ADDRESS} photos", 3), 2)) == [
        (b'{"name":"3-0"}', {f"{BLOB}photo": b"\x00\x00\x00"}),
        (b'{"name":"3-1"}', {f"{BLOB}photo": b"\x01\x01\x01"}),
    ]


def test_samples_may_end():
    assert list(messages(f"{ADDRESS} few", 9)) == [(b'{"n":9}', {})]


def test_what_raises_is_said_with_its_source():
    sent = messages(f"{ADDRESS} broken", 1)
    assert next(sent)
    with pytest.raises(
        BadApplication, match=r"sources\.broken\.samples: .*ValueError: no more"
    ):
        next(sent)


def test_a_sample_that_does_not_fit_its_source_is_refused():
    with pytest.raises(BadRecord, match=r"odd\.n"):
        next(messages(f"{ADDRESS} odd", 1))


def test_a_load_sends_the_samples_of_each_source():
    (source,) = load_sources(
        load(ADDRESS), ADDRESS, {"few": POINTS}, gaps="uniform", at_once=3, most=7
    )
    assert (source.topic, source.records) == ("sampled.few", f"{ADDRESS} few")
    assert (source.points, source.gaps, source.at_once, source.most) == (
        POINTS,
        "uniform",
        3,
        7,
    )


def test_a_source_without_samples_is_named_with_its_topic():
    with pytest.raises(
        BadApplication, match=r"sources\.bare: .*write to the topic sampled\.bare"
    ):
        load_sources(load(ADDRESS), ADDRESS, {"bare": POINTS})


def test_a_topology_file_needs_no_samples():
    (source,) = load_sources(load(VLD), VLD, {"frames": POINTS})
    assert source.records == ""

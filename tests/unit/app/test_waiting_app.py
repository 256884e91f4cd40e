import math
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean, variance

import pytest
from hypothesis import assume, given

import sojourn as sj
from sojourn.app.loading import check_loadable
from sojourn.app.waiting_app import Work, entrances, stand_in
from sojourn.errors import BadApplication
from sojourn.topology.file import read_topology
from strategies import topologies

EXAMPLES = Path(__file__).parents[3] / "examples"
FPD = read_topology(EXAMPLES / "fpd.yaml")


def topology(*operators, **arrival):
    arrivals = (sj.Arrival(**{"name": "lines", "per_s": 10, "into": "a", **arrival}),)
    return sj.Topology(name="app", arrivals=arrivals, operators=operators)


def operator(name, **fields):
    return sj.Operator(**{"name": name, "service_s": 0, **fields})


def rates(drawn):
    return {arrival.name: arrival.per_s for arrival in entrances(drawn)}


def refusal(*operators):
    with pytest.raises(BadApplication) as caught:
        stand_in(topology(*operators))
    return str(caught.value)


@pytest.mark.parametrize("file", ["vld", "fpd", "words", "words-bursty"])
def test_an_example_stands_for_itself(file):
    told = read_topology(EXAMPLES / f"{file}.yaml")
    app = stand_in(told)
    check_loadable(app)
    assert app.topology(rates(told)) == told


@given(topologies())
def test_what_comes_out_is_what_went_in(drawn):
    shared = tuple(replace(one, dispatch="shared") for one in drawn.operators)
    drawn = replace(drawn, operators=shared)
    try:
        app = stand_in(drawn)
    except BadApplication as error:
        assume("no record ever reaches it" not in str(error))
        raise
    back = app.topology(rates(drawn))
    assert back.rates == pytest.approx(drawn.rates)
    for one in drawn.operators:
        again = back.operator[one.name]
        assert again.service_s == one.service_s / one.speed
        assert (again.service_scv, again.emits) == (one.service_scv, one.emits)
        assert again.min_processors == one.min_processors
        assert again.max_processors == one.max_processors


def test_every_arrival_is_a_source_and_every_way_a_stream():
    app = stand_in(FPD)
    assert list(app.sources) == ["entering", "leaving"]
    between = ["generate-detect", "detect-detect", "detect-report"]
    assert list(app.streams) == [*app.sources, *between, "report"]
    assert list(app.sinks) == ["report"]


def test_names_that_would_meet_are_kept_apart():
    """a sends to b, and an operator a-b ends: both would write a stream a-b."""
    emits = {"b": 1, "a-b": 1}
    named = topology(operator("a", emits=emits), operator("b"), operator("a-b"), name="b")
    app = stand_in(named)
    assert list(app.streams) == ["b", "a-b", "a-a-b", "b-2", "a-b-2"]
    assert app.topology({"b": 10}) == named


def test_what_is_sent_nowhere_ends_there():
    app = stand_in(topology(operator("a", emits={"b": 0}), operator("b")))
    assert list(app.sinks) == ["a", "b"]
    assert [stream for stream, _ in app.operators["a"]("lines", (1,))] == ["a"]


def test_what_hosts_cannot_do_is_refused():
    dealt = operator("a", dispatch="round_robin")
    assert "operators.a.dispatch: round_robin is not supported by hosts" in refusal(dealt)
    assert "operators.b: no record ever reaches it" in refusal(operator("a"), operator("b"))
    lonely = operator("b", emits={"b": 0.5})
    assert "operators.b: no record ever reaches it" in refusal(operator("a"), lonely)
    foreign = operator("ä", emits={"a": 0.5})
    assert "operators: 'ä' is not a valid name" in refusal(foreign, operator("a"))


@pytest.mark.parametrize("scv", [0, 0.25, 1, 4])
def test_times_have_the_mean_and_scv_of_the_topology(scv):
    work = Work(operator="a", seed=1, service_s=0.02, scv=scv, sends=())
    number = 20_000
    times_s = [work.drawn("lines", seed)[0] for seed in range(number)]
    mean_s = fmean(times_s)
    assert mean_s == pytest.approx(0.02, rel=4 * math.sqrt(scv / number) + 1e-12)
    assert variance(times_s) / mean_s**2 == pytest.approx(scv, rel=0.2, abs=1e-12)


def test_the_whole_part_is_always_sent_and_sometimes_one_more():
    work = Work(
        operator="a", seed=1, service_s=1, scv=1, sends=(("x", 2.3), ("y", 1), ("z", 0))
    )
    sent = [Counter(to for to, _ in work.drawn("lines", seed)[1]) for seed in range(20_000)]
    assert {one["x"] for one in sent} == {2, 3}
    assert {one["y"] for one in sent} == {1}
    assert {one["z"] for one in sent} == {0}
    assert fmean(one["x"] for one in sent) == pytest.approx(2.3, abs=0.02)


def test_one_of_several_gets_the_record_or_none():
    sends = (("x", 0.2), ("y", 0.5))
    work = Work(operator="a", seed=1, service_s=1, scv=1, sends=sends, one_of=True)
    sent = Counter(
        tuple(to for to, _ in work.drawn("lines", seed)[1]) for seed in range(20_000)
    )
    assert sent.keys() == {("x",), ("y",), ()}
    assert sent["x",] / 20_000 == pytest.approx(0.2, abs=0.02)
    assert sent[()] / 20_000 == pytest.approx(0.3, abs=0.02)


def test_a_record_that_comes_again_does_the_same_again():
    again = [list(stand_in(FPD).operators["generate"]("entering", (7,))) for _ in range(2)]
    assert again[0] == again[1]
    assert len({seed for _, (seed,) in again[0]}) == 3


def test_chance_differs_by_record_stream_operator_and_seed():
    draws = {
        Work(operator=name, seed=seed, service_s=1, scv=1, sends=()).drawn(stream, record)[0]
        for name in "ab"
        for seed in (1, 2)
        for stream in ("entering", "leaving")
        for record in (1, 2)
    }
    assert len(draws) == 16


def test_every_tree_ends_and_its_records_are_as_many_as_the_visits():
    quick = replace(FPD, operators=tuple(replace(o, service_s=0) for o in FPD.operators))
    app = stand_in(quick)
    readers = {s.name: name for name, o in app.operators.items() for s in o.reads}
    visits, roots = Counter(), 2000
    waiting = [("entering", (seed,)) for seed in range(roots)]
    while waiting:
        stream, record = waiting.pop()
        if stream in readers:
            visits[readers[stream]] += 1
            waiting += app.operators[readers[stream]](stream, record)
    for name, mean in quick.visits.items():
        assert visits[name] / roots == pytest.approx(mean, rel=0.05)


def test_an_operator_waits_as_long_as_it_says():
    slow = stand_in(topology(operator("a", service_s=0.04, service_scv=0, speed=2)))
    before_s = time.monotonic()
    assert len(list(slow.operators["a"]("lines", (1,)))) == 1
    assert time.monotonic() - before_s >= 0.02


def test_a_record_may_take_long_by_chance():
    app = stand_in(topology(operator("a", service_s=60), per_s=0.01))
    assert app.operators["a"].time_limit_s == 6000

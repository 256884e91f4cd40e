import pickle
import re
from dataclasses import FrozenInstanceError, replace
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import (
    BadNumber,
    BadTopology,
)
from sojourn.text import shown
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.load import FanOut
from strategies import topologies

NAN, INF = float("nan"), float("inf")
NO_STREAMS = {"a": {}}


def arrival(**changes):
    return Arrival(**({"name": "frames", "per_s": 10, "into": "a"} | changes))


def operator(**changes):
    return Operator(**({"name": "a", "service_s": 0.01} | changes))


def topology(emits, *, arrivals=None, **fields):
    """Return a topology of operators that send what *emits* says."""
    operators = tuple(operator(name=name, emits=sent, **fields) for name, sent in emits.items())
    return Topology(name="t", arrivals=arrivals or (arrival(),), operators=operators)


def refusal(kind, build, **changes):
    with pytest.raises(BadTopology) as caught:
        build(**changes)
    assert type(caught.value) is kind
    return caught.value


@pytest.mark.parametrize(
    ("changes", "kind", "place"),
    [
        ({"name": ""}, BadTopology, "arrivals"),
        ({"name": 7}, BadTopology, "arrivals"),
        ({"name": "a,b"}, BadTopology, "arrivals.a,b"),
        ({"per_s": -1}, BadNumber, "arrivals.frames.per_s"),
        ({"per_s": NAN}, BadNumber, "arrivals.frames.per_s"),
        ({"per_s": "13"}, BadTopology, "arrivals.frames.per_s"),
        ({"scv": -0.5}, BadNumber, "arrivals.frames.scv"),
        ({"scv": None}, BadTopology, "arrivals.frames.scv"),
        ({"into": None}, BadTopology, "arrivals.frames.into"),
        ({"into": ["a", "b"]}, BadTopology, "arrivals.frames.into"),
        ({"into": {"a": "all"}}, BadTopology, "arrivals.frames.into.a"),
        ({"into": {"a": -1, "b": 2}}, BadNumber, "arrivals.frames.into.a"),
        ({"into": {1: 1}}, BadTopology, "arrivals.frames.into"),
    ],
    ids=shown,
)
def test_an_arrival_that_cannot_be_is_refused(changes, kind, place):
    error = refusal(kind, arrival, **changes)
    assert error.place == place
    assert error.way_out


@pytest.mark.parametrize(
    "into",
    [{}, {"a": 0.5}, {"a": 0.5, "b": 0.6}, {"a": 1 + 2e-6}, {"a": 10**18, "b": 10**18}],
)
def test_shares_that_do_not_add_up_to_1_are_refused(into):
    error = refusal(BadNumber, arrival, into=into)
    assert error.place == "arrivals.frames.into"
    total = sum(map(float, into.values()))
    assert f"sum of the shares is {total:.6g}; it must be 1" in str(error)


@pytest.mark.parametrize("into", [{"a": 1}, {"a": 1 / 3, "b": 2 / 3}, {"a": 0, "b": 1 - 5e-7}])
def test_shares_add_up_to_1_as_people_and_floats_write_it(into):
    assert arrival(into=into).shares == into


def test_all_of_a_stream_enters_at_the_one_operator_named():
    assert arrival(into="a").shares == {"a": 1.0}


@pytest.mark.parametrize(
    ("changes", "kind", "place"),
    [
        ({"name": None}, BadTopology, "operators"),
        ({"name": "a=b"}, BadTopology, "operators.a=b"),
        ({"service_s": -1}, BadNumber, "operators.a.service_s"),
        ({"service_s": INF}, BadNumber, "operators.a.service_s"),
        ({"service_s": 10**400}, BadNumber, "operators.a.service_s"),
        ({"service_s": True}, BadTopology, "operators.a.service_s"),
        ({"service_scv": -1}, BadNumber, "operators.a.service_scv"),
        ({"service_scv": "high"}, BadTopology, "operators.a.service_scv"),
        ({"arrival_scv": NAN}, BadNumber, "operators.a.arrival_scv"),
        ({"arrival_scv": [1]}, BadTopology, "operators.a.arrival_scv"),
        ({"transfer_s": -1}, BadNumber, "operators.a.transfer_s"),
        ({"transfer_s": None}, BadTopology, "operators.a.transfer_s"),
        ({"speed": -1}, BadNumber, "operators.a.speed"),
        ({"speed": 0}, BadNumber, "operators.a.speed"),
        ({"speed": 1e-308, "service_s": 1e10}, BadNumber, "operators.a.speed"),
        ({"cpu_s": -1}, BadNumber, "operators.a.cpu_s"),
        ({"cpu_s": NAN}, BadNumber, "operators.a.cpu_s"),
        ({"cpu_s": "all"}, BadTopology, "operators.a.cpu_s"),
        ({"service_s": 0.2, "cpu_s": 0.3}, BadNumber, "operators.a.cpu_s"),
        ({"route": "all"}, BadTopology, "operators.a.route"),
        ({"route": ["each"]}, BadTopology, "operators.a.route"),
        ({"dispatch": "random"}, BadTopology, "operators.a.dispatch"),
        ({"emits": None}, BadTopology, "operators.a.emits"),
        ({"emits": "b"}, BadTopology, "operators.a.emits"),
        ({"emits": {"b": "1"}}, BadTopology, "operators.a.emits.b"),
        ({"emits": {"b": -1}}, BadNumber, "operators.a.emits.b"),
        ({"emits": {"": 1}}, BadTopology, "operators.a.emits"),
        ({"min_processors": 0}, BadNumber, "operators.a.min_processors"),
        ({"min_processors": 1.5}, BadTopology, "operators.a.min_processors"),
        ({"min_processors": 10**5000}, BadNumber, "operators.a.min_processors"),
        ({"max_processors": -2}, BadNumber, "operators.a.max_processors"),
        ({"max_processors": "many"}, BadTopology, "operators.a.max_processors"),
    ],
    ids=shown,
)
def test_an_operator_that_cannot_be_is_refused(changes, kind, place):
    error = refusal(kind, operator, **changes)
    assert error.place == place
    assert error.way_out


def test_more_processors_required_than_allowed_are_refused():
    error = refusal(BadNumber, operator, min_processors=5, max_processors=4)
    assert str(error) == (
        "operators.a.max_processors: 4 is below min_processors, 5; "
        "raise max_processors or lower min_processors"
    )


def test_as_many_processors_may_be_required_as_allowed():
    assert operator(min_processors=5, max_processors=5).max_processors == 5


def test_a_record_that_goes_one_way_cannot_have_more_than_one_chance():
    error = refusal(BadNumber, operator, route="one_of", emits={"b": 0.7, "c": 0.4})
    assert error.place == "operators.a.emits"
    assert (
        "the probabilities is 1.1; it must be at most 1; lower them, or write route: each"
        in str(error)
    )


def test_chances_beyond_the_floats_are_refused():
    refusal(BadNumber, operator, route="one_of", emits={"b": 10**18, "c": 10**18})


def test_a_record_may_also_end_where_it_could_go_one_way():
    assert operator(route="one_of", emits={"b": 0.5, "c": 0.2}).emits["b"] == 0.5


@pytest.mark.parametrize(
    ("route", "emits", "branches"),
    [
        ("each", {}, False),
        ("each", {"b": 1}, False),
        ("each", {"b": 1.5}, True),
        ("each", {"b": 0.5, "c": 0.5}, True),
        ("each", {"b": 0.5, "c": 0}, False),
        ("one_of", {"b": 0.5, "c": 0.5}, False),
    ],
)
def test_a_record_branches_if_it_may_have_two_children(route, emits, branches):
    assert operator(route=route, emits=emits).branches is branches


@pytest.mark.parametrize(
    ("route", "mean", "variance"),
    [
        ("each", 3, 0),
        ("each", 8.5, 0.25),
        ("each", 0.25, 0.1875),
        ("one_of", 0.25, 0.1875),
        ("one_of", 1 + 5e-7, 0),
        ("each", 1e18, 0),
        ("each", 2**59, 0),
    ],
)
def test_an_operator_sends_a_whole_number_of_records_and_at_times_one_more(
    route, mean, variance
):
    found = operator(route=route, emits={"b": mean, "c": 0}).fan_outs
    assert found == {"b": FanOut(mean, pytest.approx(variance))}


def test_records_are_frozen():
    for record in (arrival(), operator(), topology(NO_STREAMS)):
        with pytest.raises(FrozenInstanceError):
            record.name = "other"


@pytest.mark.parametrize("name", ["", "  ", None, 3, ["t"], "a\nb", "\ud800"], ids=repr)
def test_a_topology_has_a_name_that_can_be_printed(name):
    error = refusal(BadTopology, lambda: replace(topology(NO_STREAMS), name=name))
    assert (error.place, error.problem) == ("name", f"{name!r} is not a name")
    assert error.way_out == "write text, in quotes if necessary"


def test_a_topology_has_operators():
    error = refusal(BadTopology, topology, emits={})
    assert str(error) == "operators: there are none; write at least one"


def test_no_two_operators_have_one_name():
    twins = (operator(), operator())
    error = refusal(BadTopology, Topology, name="t", arrivals=(arrival(),), operators=twins)
    assert (error.place, error.problem) == ("operators.a", "the name occurs 2 times")


def test_no_two_arrivals_have_one_name():
    error = refusal(BadTopology, topology, emits=NO_STREAMS, arrivals=(arrival(), arrival()))
    assert (error.place, error.problem) == ("arrivals.frames", "the name occurs 2 times")


def test_an_arrival_and_an_operator_may_have_one_name():
    assert topology(NO_STREAMS, arrivals=(arrival(name="a"),)).rates == {"a": 10}


@pytest.mark.parametrize("into", ["z", "", {"a": 0.5, "z": 0.5}, {"a": 1, "z": 0}], ids=str)
def test_records_enter_only_at_operators_that_exist(into):
    error = refusal(BadTopology, topology, emits=NO_STREAMS, arrivals=(arrival(into=into),))
    unknown = "" if into == "" else "z"
    assert error.place == f"arrivals.frames.into.{unknown}"
    assert error.problem == f"there is no operator {unknown!r}"
    assert error.way_out == "add it, or write one of a"


@pytest.mark.parametrize("mean", [0, 1])
def test_records_are_sent_only_to_operators_that_exist(mean):
    error = refusal(BadTopology, topology, emits={"a": {"z": mean}})
    assert str(error) == (
        "operators.a.emits.z: there is no operator 'z'; add it, or write one of a"
    )


@pytest.mark.parametrize("per_s", [None, 0, 0.0], ids=repr)
def test_a_topology_that_nothing_enters_is_refused(per_s):
    streams = () if per_s is None else (arrival(per_s=per_s),)
    error = refusal(BadTopology, Topology, name="t", arrivals=streams, operators=(operator(),))
    assert (error.place, error.problem) == ("arrivals", "the arrival rate is 0")
    assert "frames: {per_s: 13, into: extract}" in error.way_out


@pytest.mark.parametrize(
    ("emits", "gain"),
    [
        ({"a": {"a": 1}}, 1),
        ({"a": {"a": 1 - 1e-10}}, 1),
        ({"a": {"b": 2}, "b": {"a": 0.5}}, 1),
        ({"a": {"b": 0.5}, "b": {"a": 2}}, 1),
        ({"a": {"b": 3}, "b": {"c": 1 / 7}, "c": {"a": 7 / 3}}, 1),
        ({"a": {"b": 1}, "b": {"a": 0.5, "b": 0.5}}, 1),
        ({"a": {"b": 2}, "b": {"a": 2}}, 2),
        ({"a": {}, "b": {"c": 1}, "c": {"b": 1}}, 1),
        ({"a": {}, "b": {"b": 3}}, 3),
        ({"a": {"a": 10**18}}, 1e18),
        ({"a": {"a": 1e18, "b": 1e18}, "b": {"a": 1e18, "b": 1e18}}, 2e18),
    ],
    ids=shown,
)
def test_a_loop_that_sends_back_what_it_takes_is_refused(emits, gain):
    """Even one that nothing reaches: the first record to get there would never leave."""
    error = refusal(BadTopology, topology, emits=emits)
    _, first, _ = error.place.split(".")
    assert first in emits[first] or any(first in sent for sent in emits.values())
    said = re.search(r"has gain (\S+), so the number of its records grows", error.problem)
    assert float(said[1]) == pytest.approx(gain)
    assert error.way_out.endswith("until the gain is below 1")


def test_an_unstable_loop_is_refused_with_all_in_it():
    error = refusal(BadTopology, topology, emits={"a": {"b": 1}, "b": {"c": 1}, "c": {"b": 1}})
    assert error.place == "operators.b.emits"
    assert "the loop through b, c has" in str(error)


@pytest.mark.parametrize(
    "emits",
    [
        {"a": {"a": 0.999}},
        {"a": {"b": 2}, "b": {"a": 0.4995}},
        {"a": {"b": 1}, "b": {"a": 0.5, "b": 0.499}},
        {"a": {"b": 5, "c": 5}, "b": {"c": 5}, "c": {}},
        {"a": {"b": 1}, "b": {"a": 0}},
    ],
    ids=str,
)
def test_a_loop_that_dies_out_is_accepted(emits):
    assert all(isfinite(per_s) for per_s in topology(emits).rates.values())


@pytest.mark.parametrize(("product", "sound"), [(0.999, True), (1, False), (1.001, False)])
@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_only_the_product_around_a_ring_decides(product, sound, length):
    """However uneven the factors are: here every other one doubles what the next halves."""
    names = [f"o{i}" for i in range(length)]
    factors = [2.0 if i % 2 else 0.5 for i in range(length)]
    factors[0] *= product * (1 if length % 2 == 0 else 2)
    emits = {name: {names[(i + 1) % length]: factors[i]} for i, name in enumerate(names)}
    streams = (arrival(into="o0"),)
    if sound:
        assert topology(emits, arrivals=streams).rates["o0"] == pytest.approx(10_000)
    else:
        refusal(BadTopology, topology, emits=emits, arrivals=streams)


@pytest.mark.parametrize(
    ("emits", "fields", "per_s"),
    [
        ({"a": {}}, {"service_s": 1e12}, 10),
        ({"a": {}}, {"speed": 1e-12}, 10),
        ({"a": {}}, {"service_s": 1}, 1e18),
        (
            {f"o{i}": {f"o{i + 1}": 1e18} for i in range(18)} | {"a": {"o0": 1}, "o18": {}},
            {"service_s": 0},
            10,
        ),
    ],
)
def test_rates_beyond_all_measure_are_refused_as_a_slip_of_the_unit(emits, fields, per_s):
    streams = (arrival(per_s=per_s, scv=10),)
    error = refusal(BadNumber, topology, emits=emits, arrivals=streams, **fields)
    assert error.place in {f"operators.{name}" for name in emits}
    assert error.way_out.startswith("check the units")


def test_records_enter_where_their_streams_say():
    streams = (arrival(), arrival(name="extra", per_s=4, into={"a": 0.25, "b": 0.75}))
    found = topology({"a": {"b": 0.5}, "b": {}, "c": {}}, arrivals=streams)
    assert found.arrivals_per_s == 14
    assert found.entries == {"a": 11, "b": 3, "c": 0}
    assert found.rates == {"a": 11, "b": 8.5, "c": 0}
    assert found.visits == pytest.approx({"a": 11 / 14, "b": 8.5 / 14, "c": 0})


def test_a_faster_processor_is_busy_for_a_shorter_time():
    assert topology(NO_STREAMS, service_s=0.3, speed=2).loads["a"].service_s == 0.15


def test_loads_are_those_of_the_operators():
    found = topology({"a": {"b": 2}, "b": {}}, service_s=0.5, service_scv=0.3).loads
    assert [load.arrivals_per_s for load in found.values()] == [10, 20]
    assert {load.service_s for load in found.values()} == {0.5}
    assert {load.service_scv for load in found.values()} == {0.3}


def test_the_operators_inside_loops_are_known():
    emits = {"a": {"b": 1}, "b": {"c": 0.5, "d": 1}, "c": {"b": 0.5}, "d": {"d": 0.1, "e": 1}}
    assert topology(emits | {"e": {}}).looped == {"b", "c", "d"}


def test_a_stream_that_carries_nothing_closes_no_loop():
    assert topology({"a": {"b": 1}, "b": {"a": 0}}).looped == set()


def test_a_topology_branches_where_records_are():
    emits = {"a": {"b": 1}, "b": {}, "c": {"b": 2}}
    assert not topology(emits).branches
    assert topology(emits, arrivals=(arrival(into="c"),)).branches


def test_a_chain_of_thousands_of_operators_is_a_topology():
    emits = {f"o{i}": {f"o{i + 1}": 1} for i in range(3000)} | {"o3000": {}}
    assert topology(emits, arrivals=(arrival(into="o0"),)).rates["o3000"] == 10


@given(drawn=topologies(), factor=st.floats(0.01, 100))
def test_faster_arrivals_are_the_same_topology_with_more_to_do(drawn, factor):
    scaled = drawn.scaled(factor)
    assert scaled.operators == drawn.operators
    assert scaled.visits == pytest.approx(drawn.visits)
    assert scaled.rates == pytest.approx({n: r * factor for n, r in drawn.rates.items()})


@pytest.mark.parametrize(
    ("factor", "kind"), [(0, BadTopology), (-1, BadNumber), (NAN, BadNumber)]
)
def test_arrivals_cannot_be_scaled_to_nothing(factor, kind):
    refusal(kind, topology(NO_STREAMS).scaled, factor=factor)


@given(drawn=topologies())
def test_what_enters_leaves(drawn):
    """Every record has one birth, from outside or sent by another, and one death."""
    born = drawn.arrivals_per_s + sum(
        drawn.rates[name] * sum(sent.values()) for name, sent in drawn.gains.items()
    )
    assert sum(drawn.rates.values()) == pytest.approx(born)


@given(drawn=topologies())
def test_topologies_travel_between_processes(drawn):
    assert drawn.loads
    twin = pickle.loads(pickle.dumps(drawn))
    assert twin == drawn
    assert twin.loads == drawn.loads


@given(drawn=topologies(max_erlangs=3))
def test_drawn_topologies_are_as_modest_as_they_claim(drawn):
    for each in drawn.operators:
        load = drawn.loads[each.name]
        assert load.erlangs <= 3.001
        assert each.max_processors is None or each.max_processors >= load.min_processors


@given(drawn=topologies(loops=False))
def test_topologies_drawn_without_loops_have_none(drawn):
    assert not drawn.looped


# -- cores -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "kind"),
    [(0, BadNumber), (-2, BadNumber), (NAN, BadNumber), (INF, BadNumber), ("2", BadTopology)],
    ids=shown,
)
def test_cores_that_cannot_be_are_refused(cores, kind):
    error = refusal(kind, lambda: replace(topology(NO_STREAMS), cores=cores))
    assert error.place == "cores"


def test_all_of_a_service_may_be_computing_but_for_rounding():
    assert operator(service_s=0.3, cpu_s=0.1 + 0.2).cpu_s == 0.1 + 0.2
    error = refusal(BadNumber, operator, service_s=0.2, cpu_s=0.3)
    assert str(error) == (
        "operators.a.cpu_s: 0.3 is above service_s, 0.2, which includes it; "
        "lower cpu_s or raise service_s"
    )


def test_cores_say_nothing_of_what_a_record_takes_by_itself():
    alone = topology(NO_STREAMS, cpu_s=0.01)
    assert replace(alone, cores=1).loads == alone.loads
    assert replace(alone, cores=1).scaled(2).cores == 1


def test_operators_are_replaced_by_those_of_their_name():
    before = topology({"a": {"b": 1}, "b": {}})
    slower = replace(before.operator["b"], service_s=7.0)
    after = before.with_operators(slower)
    assert list(after.operator) == ["a", "b"]
    assert after.operator["b"] is slower
    assert after.operator["a"] is before.operator["a"]
    assert before.with_operators() == before

"""Records of one key are served one after the other."""

from dataclasses import replace
from math import ceil, inf, nan

import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal, aim
from sojourn.decide.assign import assign
from sojourn.decide.explain import KeyExplanation, explain
from sojourn.decide.headroom import headroom
from sojourn.decide.minimise import minimise
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.errors import BadNumber, BadTopology, HotKey, TargetBelowFloor
from sojourn.model.network import mean_s
from sojourn.report.json.plans import explanation_report
from sojourn.report.terminal.tables import show_explanation
from sojourn.simulate.run import simulate
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Keys, Workload
from sojourn.topology.file import parse_topology, topology_text

KEYED = sj.Topology(
    name="keyed",
    arrivals=(sj.Arrival(name="in", per_s=10, into="read"),),
    operators=(
        sj.Operator(name="read", service_s=0.2, emits={"count": 1}),
        sj.Operator(name="count", service_s=0.5, hottest_key=0.19),
    ),
)


def hot(part, per_s=10.0):
    read, count = KEYED.operators
    return replace(KEYED, operators=(read, replace(count, hottest_key=part))).scaled(per_s / 10)


def test_processors_go_where_they_help():
    """The key waits for itself, the others for processors; if all have the key, none does."""
    assert assign(hot(0.19), 20).allocation == assign(hot(0.0), 20).allocation
    assert assign(hot(1.0, 1.5), 20).allocation == {"read": 19, "count": 1}


@pytest.mark.parametrize("processors", [6, 9])
def test_a_processor_more_than_the_key_leaves_busy_on_average_still_helps(processors):
    """At most 1 / 0.15 = 6.7 are busy on average; the others still shorten waits."""
    topology, allocation = hot(0.15), {"read": 4, "count": processors}
    simulated = simulate(topology, allocation, roots=400_000)
    assert mean_s(topology, allocation) == pytest.approx(simulated.mean_s.value, rel=0.04)
    fewer = {"read": 4, "count": 6}
    assert processors == 6 or simulated.mean_s.value < 0.95 * mean_s(topology, fewer)


@pytest.mark.parametrize("statistic", ["mean", "p95"])
def test_a_target_that_one_key_puts_out_of_reach_is_refused_with_the_key(statistic):
    with pytest.raises(TargetBelowFloor) as caught:
        minimise(hot(0.19), Target(statistic, 2.4))
    assert str(caught.value).startswith(
        f"no number of processors reaches {statistic} ≤ 2.4 s: one key has 19 % of the records "
        "of count, which alone keep 0.95 processors busy, and its records are processed one at "
        "a time, so it is still "
    )
    assert minimise(hot(0.01), Target(statistic, 2.4)).processors > 0


def test_a_target_below_service_is_not_the_fault_of_a_key():
    with pytest.raises(TargetBelowFloor, match="without any waiting"):
        minimise(hot(0.1), Target("mean", 0.6))


def test_a_floor_is_what_any_number_of_processors_leaves():
    floor_s = explain(KEYED, {"read": 5, "count": 9}).floor_s
    many_s = mean_s(KEYED, {"read": 500, "count": 500})
    assert floor_s == pytest.approx(many_s) == pytest.approx(0.7 + 0.19 * 9.5)


def test_an_explanation_shows_the_key_and_what_it_bounds(capsys):
    named = replace(hot(0.19).operator["count"], hottest_key_name='"the"')
    found = explain(hot(0.19).with_operators(named), {"read": 5, "count": 9}).operators["count"]
    assert found.binds == "hottest key"
    key = KeyExplanation(name='"the"', part=0.19, busy=0.95, most_per_s=1 / (0.19 * 0.5))
    assert found.key == key
    shown = explain(hot(0.19).with_operators(named), {"read": 5, "count": 9})
    show_explanation(shown, parts=[], plans={})
    assert "at most 10.53 per s with any number of processors" in capsys.readouterr().out
    assert (
        explanation_report(shown, parts=[], plans={})["operators"]["count"]["hottest_key"][
            "busy"
        ]
        == 0.95
    )
    plain = explain(hot(0.01), {"read": 5, "count": 6}).operators
    assert (plain["count"].binds, plain["read"].key) == ("keeping up", None)


@pytest.mark.parametrize(
    "plan",
    [lambda t: assign(t, 40), lambda t: mean_s(t, {"read": 9, "count": 9})],
    ids=["plan", "prediction"],
)
def test_a_key_that_is_too_much_for_one_processor_is_named(plan):
    plan(hot(0.19))
    with pytest.raises(HotKey) as caught:
        plan(hot(0.26))
    assert str(caught.value) == (
        "more processors do not help: one key has 26 % of the records of count, which alone "
        "keep 1.3 processors busy, and records of a key are served one at a time; spread the "
        "key, or make the function faster"
    )


def test_what_is_aimed_at_then_is_what_the_others_need_and_one_for_the_key():
    goal = Goal(target=Target("mean", 1.0))
    found, plain = aim(hot(0.5), goal), aim(hot(0.0), goal).allocation
    assert found.allocation["count"] == 1 + ceil(0.5 * plain["count"]) < plain["count"]
    assert "one key has 50 % of the records of count" in found.note


def test_what_is_aimed_at_for_a_target_that_the_key_puts_out_of_reach_is_said():
    found = aim(hot(0.19), Goal(target=Target("mean", 1.5)))
    assert found.note.startswith(
        "more processors do not reach mean ≤ 1.5 s: one key has 19 % of the records of count"
    )
    assert sum(found.allocation.values()) < 20


def test_load_may_grow_until_the_hottest_key_fills_a_processor():
    found = headroom(hot(0.19), {"read": 30, "count": 30})
    assert found.factor == pytest.approx(1 / (0.19 * 5), rel=1e-4)
    assert found.binds == "count cannot keep up with one key, whatever its processors"
    assert headroom(hot(0.19), {"read": 30, "count": 5}).binds == "count cannot keep up"


@pytest.mark.parametrize("part", [-0.1, 1.1, nan, inf])
def test_a_part_is_a_part(part):
    with pytest.raises(BadNumber, match=r"operators\.count\.hottest_key"):
        hot(part)


def test_it_is_read_from_a_file():
    text = """
format: 1
name: keyed
arrivals: {in: {per_s: 10, into: count}}
operators:
  count: {service_s: 0.05, hottest_key: 0.3, hottest_key_name: the}
"""
    read = parse_topology(text)
    assert read.operator["count"].hottest_key == 0.3
    assert parse_topology(topology_text(read)) == read
    with pytest.raises(BadTopology, match=r"hottest_key_name: 7 is not text; put it in quotes"):
        parse_topology(text.replace("name: the}", "name: 7}"))


@pytest.mark.parametrize(("per_s", "keeps_up"), [(2, True), (5, False)])
def test_a_simulation_of_keys_keeps_up_as_long_as_the_bound_says(per_s, keeps_up):
    """Two keys, of which one has about two thirds of all records; 30 processors."""
    keys = Keys(number=2, zipf=1.0)
    workload = Workload(dispatch={"count": "by_key"}, keys={"count": keys})
    topology = hot(max(keys.weights), per_s)
    with Simulator(workload=workload, seed=5) as simulator:
        simulator.start(topology, Plan.here({"read": 10, "count": 30}))
        waiting = {o.name: o.backlog for o in simulator.observe(600.0).operators}
    assert (waiting["count"] < 100) is keeps_up
    if keeps_up:
        mean_s(topology, {"read": 10, "count": 30})
    else:
        with pytest.raises(HotKey):
            mean_s(topology, {"read": 10, "count": 30})

"""Records of one key are served one after the other."""

from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.act.aim import Goal, aim
from sojourn.decide.assign import assign
from sojourn.decide.headroom import headroom
from sojourn.decide.minimise import minimise
from sojourn.decide.target import Target
from sojourn.errors import BadNumber, HotKey
from sojourn.model.network import mean_s
from sojourn.plan import Plan
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Keys, Workload
from sojourn.topology.file import parse_topology

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


def test_no_plan_has_more_processors_than_can_be_of_use():
    assert KEYED.operator["count"].most_processors == 6
    assert assign(KEYED, 20).allocation == {"read": 14, "count": 6}
    assert assign(hot(0.0), 20).allocation["count"] > 6
    assert minimise(KEYED, Target("mean", 1.1)).allocation["count"] <= 6


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
        "count: no number of processors can keep up: the most frequent key needs 1.3 "
        "processors, but a key is served by one at a time; split the key, or make the "
        "operator faster"
    )


def test_what_is_aimed_at_then_is_what_can_be_of_use_and_it_is_said():
    found = aim(hot(0.26), Goal(target=Target("mean", 2.0)))
    assert found.allocation["count"] == 4
    assert "most frequent key" in found.note


def test_bounds_are_kept_too():
    operator = replace(KEYED.operator["count"], max_processors=3)
    assert operator.most_processors == 3
    assert replace(operator, max_processors=None, min_processors=9).most_processors == 9


def test_load_may_grow_until_the_hottest_key_fills_a_processor():
    found = headroom(hot(0.19), {"read": 30, "count": 30})
    assert found.factor == pytest.approx(1 / (0.19 * 5), rel=1e-4)
    assert found.binds == "count cannot keep up"


@pytest.mark.parametrize("part", [-0.1, 1.1])
def test_a_part_is_a_part(part):
    with pytest.raises(BadNumber, match=r"operators\.count\.hottest_key"):
        hot(part)


def test_it_is_read_from_a_file():
    text = """
format: 1
name: keyed
arrivals: {in: {per_s: 10, into: count}}
operators:
  count: {service_s: 0.05, hottest_key: 0.3}
"""
    assert parse_topology(text).operator["count"].hottest_key == 0.3


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

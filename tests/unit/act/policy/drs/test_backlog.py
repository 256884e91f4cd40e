from dataclasses import replace

import pytest

from sojourn.act.policy.drs.backlog import behind, drain_needs, falling_behind
from sojourn.topology import Arrival, Operator, Topology
from unit.act.policy.turns import CHAIN, seen

RUNNING = {"a": 2, "b": 2}
# match computes, fetch waits for something else
PAIR = Topology(
    name="pair",
    arrivals=(Arrival(name="in", per_s=10, into="match"),),
    operators=(
        Operator(name="match", service_s=0.06, cpu_s=0.06, emits={"fetch": 1}),
        Operator(name="fetch", service_s=0.2, cpu_s=0.01),
    ),
    cores=2,
)


def waiting(at_s, **backlog):
    return seen(CHAIN, RUNNING, at_s=at_s, lasted_s=10, per_s=1.0, backlog=backlog)


def test_a_queue_is_behind_when_it_is_longer_than_chance_makes_it():
    # M/M/2 with one processor busy: a third of a record waits on average
    assert behind(CHAIN, waiting(10, a=5, b=2), RUNNING, "mmk") == {}
    assert behind(CHAIN, waiting(10, a=50), RUNNING, "mmk") == {
        "a": pytest.approx(45.7, abs=0.1)
    }


def test_where_processors_do_not_keep_up_all_that_waits_is_a_backlog():
    assert behind(CHAIN.scaled(3), waiting(10, a=50), RUNNING, "mmk") == {"a": 48.0}


@pytest.mark.parametrize(("before", "now", "falls"), [(40, 60, True), (60, 60, False)])
def test_it_falls_behind_while_a_backlog_grows(before, now, falls):
    history = [waiting(10, a=before), waiting(20, a=now)]
    assert falling_behind(CHAIN, history, RUNNING, "mmk") is falls


def test_one_look_shows_no_growth():
    assert not falling_behind(CHAIN, [waiting(10, a=500)], RUNNING, "mmk")


def test_what_waits_is_worked_off_here_and_further_on():
    # 600 in 60 s are 10 per s at a and 20 per s at b, beside 1 and 2 of the load
    assert drain_needs(CHAIN, {"a": 600.0}, 60.0) == {"a": 12, "b": 12}
    assert drain_needs(CHAIN, {"b": 600.0}, 60.0) == {"a": 2, "b": 7}


@pytest.mark.parametrize(("cores", "match"), [(2.0, 2), (4.0, 3), (500.0, 31)])
def test_no_more_is_worked_off_at_once_than_there_are_cores_for(cores, match):
    needs = drain_needs(replace(PAIR, cores=cores), {"match": 4990.0, "fetch": 4990.0}, 10.0)
    computing = sum((needs[o.name] - 1) * o.cpu_s / o.service_s for o in PAIR.operators)
    assert computing <= cores
    assert needs["match"] == match

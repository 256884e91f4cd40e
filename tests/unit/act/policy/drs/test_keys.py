"""A key that is too much for one processor: the loop adds none for it, and says so."""

from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.loop import Loop
from sojourn.simulate.simulator import Simulator

LASTS_S, EVERY_S = 900.0, 10.0


class Renamed:
    """An engine that tells the name of the hottest key, or nothing of keys."""

    def __init__(self, engine, **told):
        self._engine, self._told = engine, told

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def observe(self, until_s):
        pull = self._engine.observe(until_s)
        return replace(pull, operators=tuple(replace(o, **self._told) for o in pull.operators))


def decisions(part, target, *, processors, **told):
    """Return what is decided; the loop is not told of keys, but measures them."""
    keyed = sj.Topology(
        name="keyed",
        arrivals=(sj.Arrival(name="in", per_s=40, into="count"),),
        operators=(sj.Operator(name="count", service_s=0.1, hottest_key=part),),
    )
    plain = keyed.with_operators(sj.Operator(name="count", service_s=0.1))
    with Simulator(seed=3) as simulator:
        simulator.start(keyed, Plan.here({"count": processors}))
        policy = Drs(goal=Goal(target=target))
        loop = Loop(Renamed(simulator, **told), plain, policy, every_s=EVERY_S)
        return [episode.decision for episode in loop.run(LASTS_S)]


def most(decided):
    return max(decision.after.allocation["count"] for decision in decided)


def test_a_key_beyond_its_bound_is_named_and_gets_no_processors():
    decided = decisions(0.5, Target("p95", 1.0), processors=5, hottest_name='"the"')
    assert most(decided) <= 6
    said = 'more processors do not help: the key "the" has '
    assert all(said in decision.reason for decision in decided)
    assert decided[-1].kind == "hold"


def test_without_the_key_processors_would_be_added_again_and_again():
    """Or the test above could not fail: the backlog of the key grows all the time."""
    blind = decisions(0.5, Target("p95", 1.0), processors=5, hottest=0.0)
    assert most(blind) > 12


@pytest.mark.parametrize("target", [Target("p95", 0.5), Target("mean", 0.15)], ids=str)
def test_a_target_that_the_key_puts_out_of_reach_is_said_with_the_key(target):
    decided = decisions(0.24, target, processors=6)
    assert most(decided) <= 8
    assert any(
        "its records are processed one at a time" in decision.reason for decision in decided
    )


def test_what_others_need_beside_the_key_is_added():
    """Half of the records are of other keys: 2 processors for them, and one for the key."""
    decided = decisions(0.5, Target("p95", 1.0), processors=1)
    assert decided[-1].after.allocation["count"] in (4, 5, 6)


def test_a_key_that_is_not_frequent_changes_nothing():
    decided = decisions(0.01, Target("p95", 0.5), processors=6)
    assert all("key" not in decision.reason for decision in decided)

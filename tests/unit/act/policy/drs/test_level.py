"""Drs with an error budget: the level of the budget is the margin of load."""

from dataclasses import replace

import pytest

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.decide.minimise import minimise
from sojourn.decide.objective import Objective
from sojourn.decide.target import Target
from unit.act.policy.turns import BUSY, Turns

TARGET = Target("mean", 0.13)
RUNNING, SMALL = {"a": 13, "b": 11}, {"a": 8, "b": 7}


def running(level, *, allocation=None, objective=None):
    app = Turns(Drs(goal=Goal(target=TARGET)), BUSY, allocation or RUNNING, every_s=3)
    known = app.knowledge.keeping(objective or Objective(target=TARGET))
    app.knowledge = replace(known, budget=replace(known.budget, level=level))
    return app


def needed(per_s):
    topology = BUSY.scaled(per_s / BUSY.arrivals_per_s)
    return sum(minimise(topology, TARGET).allocation.values())


@pytest.mark.parametrize("level", [-0.1, 0.0, 0.2, 0.5])
def test_it_has_what_the_load_at_the_level_needs(level):
    app = running(level, allocation=dict.fromkeys(RUNNING, 30))
    app.turns(60, 100)
    least = needed(100 * (1 + level))
    assert least <= sum(app.knowledge.allocation.values()) <= needed(115 * (1 + level))


def test_a_level_above_what_runs_is_a_shortage_that_is_said():
    app = running(0.5, allocation=SMALL)
    decision = app.turn(100)
    assert decision.kind == "up"
    assert "at 50% more load, above the target of 0.13 s" in decision.reason


def test_a_low_level_still_carries_the_load():
    app = running(-0.5, allocation=dict.fromkeys(RUNNING, 30))
    app.turns(60, 100)
    loads = app.knowledge.topology.loads
    assert all(k >= loads[name].min_processors for name, k in app.knowledge.allocation.items())


def test_the_level_of_another_target_does_not_count():
    app = running(0.5, objective=Objective(target=Target("p95", 1.0)))
    assert "load, above" not in app.turn(100).reason


def test_what_the_goal_lacks_is_in_the_wish():
    app = running(2.0)
    app.policy = Drs(goal=Goal(target=TARGET, most=24))
    assert app.turn(100).wish.limited == "the goal was not possible"
    assert running(0.0).turn(100).wish.limited == ""


def with_level(app, level):
    known = app.knowledge
    app.knowledge = replace(known, budget=replace(known.budget, level=level))


def test_a_scale_down_is_undone_only_once_more_is_missed_than_permitted():
    app = running(-0.2, allocation=dict.fromkeys(RUNNING, 30))
    app.turns(60, 100)
    with_level(app, 0.14)
    decision = app.turn(100)
    assert decision.kind == "hold"
    assert "but this would undo a scale-down of" in decision.reason
    with_level(app, 0.16)
    assert app.turn(100).kind == "up"


@pytest.mark.parametrize(("kept", "turns"), [(0.99, 1999), (0.95, 399)])
def test_changes_that_miss_a_slice_are_as_rare_as_the_objective_permits(kept, turns):
    app = running(0.0, objective=Objective(target=TARGET, kept=kept), allocation=SMALL)
    app.pause_s = 5.0
    assert app.turn(200).kind == "up"
    decisions = app.turns(turns, 100)
    assert {d.kind for d in decisions} == {"hold"}
    assert "a change pauses operators for 5 s and misses a slice" in decisions[-1].reason
    assert app.turn(100).kind == "down"

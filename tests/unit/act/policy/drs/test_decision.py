from dataclasses import replace

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs.decision import Choice, decision
from sojourn.act.policy.drs.load_estimate import Startable, situation
from sojourn.act.policy.drs.requirement import Requirement
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.knowledge import Knowledge
from unit.act.policy.turns import CHAIN, seen

GOAL = Goal(target=Target("mean", 3.0))
RUNNING, MORE = {"a": 6, "b": 6}, {"a": 8, "b": 7}
LOOK = seen(CHAIN, RUNNING, at_s=10, lasted_s=10, per_s=4.0)
NOW = situation(
    Knowledge(topology=CHAIN, plan=Plan.here(RUNNING)).saw(LOOK), LOOK, GOAL, drain_s=60.0
)
REQUIRED = Requirement(topology=CHAIN.scaled(5), target=GOAL.target, allocation=MORE)


def decided(choice, *, now=NOW, quiet=""):
    return decision(now, REQUIRED, choice, quiet)


def test_a_choice_is_carried_out_with_what_it_rests_on():
    done = decided(Choice(MORE, "too slow"))
    assert done.allocation == MORE
    assert done.reason == "too slow: 8:7"
    assert (done.goal, done.wanted) == ("mean ≤ 3 s", MORE)
    assert (done.offered, done.noise) == (NOW.offered, NOW.offered_noise)


def test_what_is_expected_is_expected_of_the_processors_that_will_be():
    then, now = decided(Choice(MORE, "too slow")), decided(Choice.hold("all is well"))
    assert then.expected.seconds < now.expected.seconds == NOW.expected.seconds
    assert now.allocation == RUNNING


def test_while_a_backlog_is_worked_off_nothing_is_expected():
    assert decided(Choice.hold("wait"), now=replace(NOW, behind={"a": 9.0})).expected is None


def test_in_quiet_hours_it_is_said_what_would_have_been_done():
    done = decided(Choice(MORE, "too slow"), quiet="22:00-06:00")
    assert (done.allocation, done.wanted) == (RUNNING, MORE)
    assert done.reason == "too slow: 8:7, but not in quiet hours (22:00-06:00)"
    assert decided(Choice.hold("all is well"), quiet="22:00-06:00").reason == "all is well"


def test_what_does_not_start_stays_wanted():
    stuck = Startable({"a": 2}, {"a": 6}, {"a": "out of memory"})
    done = decided(Choice(MORE, "too slow"), now=replace(NOW, startable=stuck))
    assert done.allocation == {"a": 6, "b": 7}
    assert (
        done.reason == "too slow: 6:7; only 2 of 6 processors of a are running (out of memory)"
    )


def test_others_take_the_place_of_what_does_not_start_where_processors_are_limited():
    stuck = Startable({"a": 2}, {"a": 6}, {"a": ""})
    for most, allocation in ((13, {"a": 6, "b": 7}), (12, {"a": 2, "b": 7})):
        now = replace(NOW, startable=stuck, goal=replace(GOAL, most=most))
        assert decided(Choice({"a": 2, "b": 7}, "too slow"), now=now).allocation == allocation


def test_where_nothing_else_is_to_change_no_allocation_is_named():
    stuck = Startable({"a": 2}, {"a": 6}, {"a": ""})
    done = decided(Choice({"a": 9, "b": 6}, "too slow"), now=replace(NOW, startable=stuck))
    assert done.allocation == RUNNING
    assert done.reason == "too slow; only 2 of 6 processors of a are running"


def test_what_even_a_change_does_not_reach_is_said_behind_it():
    assert (
        decided(Choice(MORE, "too slow", "9 are needed")).reason
        == "too slow: 8:7 (9 are needed)"
    )

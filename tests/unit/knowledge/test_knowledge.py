from dataclasses import replace
from math import inf

import pytest

from sojourn.decide.objective import Objective
from sojourn.decide.plan import Expected, Plan
from sojourn.decide.target import Target
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.knowledge import Decision, Knowledge, PredictionError, Wish, measured_s
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from unit.act.policy.turns import CHAIN, seen

START = {"a": 2, "b": 2}


def knowledge(**fields):
    return Knowledge(topology=CHAIN, plan=Plan.here(START), **fields)


def looked(at_s, per_s=1.0, **fields):
    return replace(seen(CHAIN, START, at_s=at_s, lasted_s=10, per_s=per_s), **fields)


def decided(at_s, after=None, expected=None):
    plan = Plan.here(after or START, reason="a test", expected=expected)
    return Decision(at_s=at_s, before=Plan.here(START), after=plan)


def after_turns(number, **fields):
    known = knowledge(**fields)
    for turn in range(1, number + 1):
        known = known.saw(looked(10.0 * turn)).did(decided(10.0 * turn))
    return known


def test_it_forgets_what_is_old():
    known = after_turns(30, keep=5)
    assert [e.observation.at_s for e in known.episodes] == [260, 270, 280, 290, 300]


def test_what_is_seen_is_the_last_observation_until_it_is_decided_on():
    known = after_turns(2).saw(looked(30.0))
    assert known.at_s == 30
    assert [o.at_s for o in known.observations] == [10, 20, 30]
    assert known.did(decided(30)).seen is None


def test_the_topology_is_what_was_measured_last():
    known = knowledge().saw(looked(10, per_s=3.0))
    assert known.topology.arrivals_per_s == 3


def test_what_is_not_usable_leaves_the_last_topology():
    known = knowledge().saw(looked(10, per_s=3.0)).did(decided(10))
    unusable = Observation.unusable(10, 20, "no answer")
    assert known.saw(unusable).topology == known.topology


def test_without_arrivals_the_topology_is_the_last_one_at_hardly_any_load():
    """However long nothing arrives: each look says the same."""
    known = knowledge().saw(looked(10, per_s=3.0)).did(decided(10))
    measured = known.topology
    for turn in range(2, 50):
        known = known.saw(looked(10.0 * turn, per_s=0.0)).did(decided(10.0 * turn))
    assert known.topology.arrivals_per_s == pytest.approx(0.05)  # half a root in 10 s
    assert known.topology.operators == measured.operators
    again = known.saw(looked(500.0, per_s=3.0)).topology
    assert again.rates == pytest.approx(measured.rates)


def test_a_change_is_what_the_engine_did_not_what_was_decided():
    more = {"a": 3, "b": 2}
    refused = knowledge().saw(looked(10)).did(decided(10, more), failure="no")
    assert (refused.allocation, refused.changed_at_s) == (START, 0)
    cost = Cost(pause_s=2.0, changed={"a": (2, 3)})
    done = knowledge().saw(looked(10)).did(decided(10, more), cost)
    assert (done.allocation, done.changed_at_s, done.pause_s) == (more, 10, 2.0)


def test_what_a_change_costs_is_what_the_last_ones_cost():
    known = knowledge()
    for turn, pause_s in enumerate([60.0] * 10 + [1.0, 2.0, 3.0, 4.0, 5.0], 1):
        cost = Cost(pause_s=pause_s, changed={"a": (2, 3)})
        known = known.saw(looked(10.0 * turn)).did(decided(10.0 * turn), cost)
    assert known.pause_s == 3.0
    assert knowledge().pause_s == 0.0


def test_predictions_are_compared_with_what_then_happened():
    known = knowledge()
    for turn, took_s in enumerate((9.0, 2.0, 4.0), 1):
        expected = Expected(
            statistic="mean", seconds=3.0, arrivals_per_s=1, sojourns_s={"a": 2.0}
        )
        times = Sketch.of([took_s])
        known = known.saw(looked(10.0 * turn, sums=times)).did(
            decided(10.0 * turn, expected=expected)
        )
    # the first was not expected by anyone: 3 against 2, and 3 against 4
    error = known.prediction_error()
    assert (error.number, error.mean, error.spread) == (2, 0.0, pytest.approx(1 / 3))
    assert known.prediction_errors() == {}  # nothing waited in these observations


def test_what_was_not_carried_out_is_not_compared():
    expected = Expected(statistic="mean", seconds=inf, arrivals_per_s=1)
    more = {"a": 3, "b": 2}
    known = knowledge().saw(looked(10)).did(decided(10, more, expected=expected))
    assert known.saw(looked(20)).outcomes() == []
    assert known.prediction_error() is None


def test_errors_of_nothing_are_none():
    assert PredictionError.over([(1.0, 0.0)]) is None


def test_statistics_are_measured_of_sums_and_of_completions():
    observation = looked(10, sums=Sketch.of([4.0]), completions=Sketch.of([1.0] * 99 + [2.0]))
    assert measured_s(observation, "mean") == 4
    assert measured_s(observation, "p50") == pytest.approx(1, rel=0.01)


def test_a_decision_on_nothing_is_refused():
    with pytest.raises(BadInput, match="no observation to decide on"):
        knowledge().did(decided(10))
    with pytest.raises(BadInput, match="keep is 0 turns; write 1 or more"):
        knowledge(keep=0)


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ({"a": 2, "b": 2}, "hold"),
        ({"a": 3, "b": 2}, "up"),
        ({"a": 1, "b": 2}, "down"),
        ({"a": 1, "b": 3}, "move"),
    ],
)
def test_decisions_are_named_by_what_they_do(after, kind):
    assert decided(10, after).kind == kind


CAUSES = {
    "the application was starting": {"warming": True},
    "a change paused operators": {"pause_s": 2.0},
    "a batch ended": {"commits": 1},
    "cores were busy": {"limited": "cores were busy"},
    "processors were not running": {"running": 1, "at_s": 60.0},
    "": {"running": 1, "at_s": 20.0},  # they may still start
}


@pytest.mark.parametrize("cause", CAUSES)
def test_causes_that_no_margin_prevents_are_noted_for_the_slice(cause):
    told = {"pause_s": 0.0, "commits": 0, "limited": "", "running": 2, "at_s": 20.0}
    told |= {"warming": False} | CAUSES[cause]
    known = Knowledge(topology=CHAIN, plan=Plan.here({"a": 2, "b": 2}))
    known = known.keeping(Objective(target=Target("p95", 1.0)))
    running = {"a": told["running"], "b": 2}
    look = seen(CHAIN, running, at_s=told["at_s"], lasted_s=3, per_s=1, commits=told["commits"])
    wanted = {name: replace(o, wanted=2) for name, o in look.operators.items()}
    known = known.saw(replace(look, operators=wanted, warming=told["warming"]))
    wish = Wish(allocation=known.allocation, reason="a test", limited=told["limited"])
    decision = Decision(at_s=known.at_s, before=known.plan, after=known.plan, wish=wish)
    cost = Cost(pause_s=told["pause_s"], changed={}) if told["pause_s"] else None
    known = known.did(decision, cost)
    noted = {each for waits in known.budget.waiting for each in waits.causes}
    assert noted == ({cause} if cause else set())


def test_older_decisions_are_remembered_ten_seconds_apart_and_changes_always():
    known = Knowledge(topology=CHAIN, plan=Plan.here({"a": 2, "b": 2}), keep=10)
    for at_s in range(1, 3001):
        known = known.saw(seen(CHAIN, {"a": 2, "b": 2}, at_s=at_s, lasted_s=1, per_s=1))
        decision = Decision(at_s=float(at_s), before=known.plan, after=known.plan)
        known = known.did(decision, Cost(pause_s=0.0, changed={}) if at_s == 1234 else None)
    times = [episode.decision.at_s for episode in known.remembered]
    assert times == sorted(times)
    assert len(known.episodes) == 10
    assert times[0] == pytest.approx(600, abs=10)
    assert len(known.earlier) == pytest.approx(240, abs=2)
    assert 1234 in times

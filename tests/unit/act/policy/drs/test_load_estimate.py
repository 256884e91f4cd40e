from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs.load_estimate import holt, situation
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.knowledge import Decision, Knowledge
from sojourn.measure.smooth import Window
from unit.act.policy.turns import CHAIN, seen

GOAL = Goal(target=Target("mean", 3.0))
RUNNING = {"a": 8, "b": 8}


def looks(*rates_per_s, **told):
    """Return what is known after a look at each of these loads."""
    known = Knowledge(topology=CHAIN, plan=Plan.here(RUNNING))
    for i, per_s in enumerate(rates_per_s, 1):
        if known.seen is not None:
            known = known.did(Decision(at_s=known.at_s, before=known.plan, after=known.plan))
        look = seen(CHAIN, RUNNING, at_s=10.0 * i, lasted_s=10, per_s=per_s)
        if i == len(rates_per_s):
            look = seen(CHAIN, RUNNING, at_s=10.0 * i, lasted_s=10, per_s=per_s, **told)
        known = known.saw(look)
    return known


def now(known, *, goal=GOAL, smooth=6, **options):
    average = Window(smooth)(known.observations)
    return situation(known, average, goal, drain_s=60.0, **options)


def test_the_load_is_the_average_of_what_was_observed():
    load = now(looks(4, 5, 6))
    assert load.topology.arrivals_per_s == pytest.approx(5)
    assert load.offered == pytest.approx({"a": 5.0, "b": 5.0})
    assert load.behind == load.needs == {}


def test_where_queues_grow_more_than_the_average_must_be_arriving():
    load = now(looks(1, 1, 1, 1, 6, 6, backlog={"a": 500}))
    assert load.topology.arrivals_per_s == pytest.approx(6)
    assert load.offered["a"] == pytest.approx(16 / 6)
    assert load.needs["a"] > 6


def test_when_nothing_arrives_less_than_a_root_in_the_whole_time_is_planned_for():
    load = now(looks(0, 0, 0, 0))
    assert load.topology.arrivals_per_s == pytest.approx(0.5 / 40)
    assert load.topology.operators == CHAIN.operators


def test_the_less_arrived_the_less_certain_it_is():
    few, many = now(looks(0.5)), now(looks(5))
    assert few.uncertainty > 2 * many.uncertainty


def test_a_forecast_looks_ahead_only_where_there_is_a_trend():
    rising, steady = range(30, 240, 30), (80,) * 7
    ahead, level = (now(looks(*load), smooth=1, forecast=True) for load in (rising, steady))
    assert ahead.topology.arrivals_per_s == pytest.approx(240)
    assert level.topology.arrivals_per_s == pytest.approx(80)


def test_what_is_expected_is_said_in_words():
    load = now(looks(4))
    wait_s = load.expected.seconds - load.floor_s
    assert load.text(load.expected) == f"predicted mean is {load.expected.seconds:.3g} s"
    assert f"{load.floor_s + 3 * wait_s:.3g} s" in load.text(load.expected, 3.0)
    assert now(looks(9)).expected is None
    assert load.text(None) == "predicted mean is unbounded"


def test_the_floor_is_worked_out_for_a_target_and_who_learns():
    assert now(looks(4)).floor_s == pytest.approx(2.0, rel=0.01)
    assert now(looks(4), learns=False).floor_s == inf
    assert now(looks(4), goal=replace(GOAL, target=None, most=20)).floor_s == inf


def test_without_a_target_it_is_the_mean_that_counts():
    assert now(looks(4), goal=Goal(target=Target("p95", 9.0))).goal.statistic == "p95"
    assert now(looks(4), goal=Goal(most=20)).goal.statistic == "mean"


# -- the forecast ------------------------------------------------------------------------------


@given(st.floats(0, 1e6), st.floats(0, 100))
def test_a_straight_line_goes_on(start, slope):
    line = [(10.0 * i, start + slope * 10 * i) for i in range(20)]
    assert holt(line, 250.0) == pytest.approx(start + slope * 250, rel=1e-9, abs=1e-9)


def test_a_steady_value_stays():
    assert holt([(float(i), 5.0) for i in range(50)], 100.0) == pytest.approx(5.0)


def test_one_value_is_its_own_forecast():
    assert holt([(0.0, 7.0)], 100.0) == 7.0


def test_it_never_forecasts_less_than_nothing():
    assert holt([(0.0, 10.0), (1.0, 5.0), (2.0, 1.0)], 60.0) == 0.0


def test_times_that_do_not_go_on_are_left_out():
    assert holt([(0.0, 1.0), (0.0, 9.0), (1.0, 1.0)], 2.0) == pytest.approx(1.0)

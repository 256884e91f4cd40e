"""Verdicts are the point of an experiment, so each of them must be able to fail."""

from dataclasses import replace
from functools import partial

import pytest

from sojourn.decide.solution import NodeSize
from sojourn.measure.interval import Interval
from sojourn_papers.experiments import bursts, changing_load, configurations, machines, overhead
from sojourn_papers.experiments import rebalancing as rebalanced
from sojourn_papers.experiments.fixed_allocation import Fixed
from sojourn_papers.experiments.machine_changes import MachineChange
from sojourn_papers.experiments.machine_steps import Step
from sojourn_papers.experiments.network import falling
from sojourn_papers.experiments.timeline import Change, Minute, Watched


def compared(allocation, estimated_s, mean_s, std_s, *, per_s=5, gigk_s=0.0):
    return Fixed(
        per_s=per_s,
        name=allocation,
        mean=Interval(mean_s, 0.01),
        std=Interval(std_s, 0.01),
        mmk_s=estimated_s,
        gigk_s=gigk_s,
    )


def watched(means_s, *changes):
    """Return a run with these minute means, and changes of (minute, kind, before, after)."""
    return Watched(
        minutes=tuple(
            Minute(minute=float(n), mean_s=m, completion_s=m, per_s=1.0, allocation="1:1")
            for n, m in enumerate(means_s, 1)
        ),
        changes=tuple(
            Change(minute=float(at), kind=kind, before=before, after=after)
            for at, kind, before, after in changes
        ),
    )


BEST, OTHER = compared("2:1", 1.0, 1.1, 0.5), compared("1:2", 1.2, 1.4, 0.8)


def test_the_recommendation_must_be_the_papers():
    assert configurations.recommended("VLD", "10:11:1", "10:11:1").holds
    assert not configurations.recommended("VLD", "10:11:1", "11:10:1").holds


def test_the_fastest_is_faster_by_more_than_chance():
    assert configurations.least("mean", "VLD", "2:1", [BEST, OTHER]).holds
    assert not configurations.least("mean", "VLD", "1:2", [BEST, OTHER]).holds
    unsure = compared("1:2", 1.2, 1.105, 0.8)
    assert not configurations.least("mean", "VLD", "2:1", [BEST, unsure]).holds


def test_the_calmest_has_the_least_standard_deviation():
    deviation = partial(configurations.least, "standard deviation", "VLD", "2:1")
    assert deviation([BEST, OTHER]).holds
    assert not deviation([BEST, compared("1:2", 1, 2, 0.4)]).holds


def test_a_lower_estimate_with_a_plainly_higher_mean_is_out_of_order():
    assert configurations.in_order("VLD", [OTHER, BEST]).holds
    wrong = configurations.in_order("VLD", [BEST, OTHER, compared("3:0", 0.9, 1.6, 1)])
    assert not wrong.holds
    assert "3:0 before 2:1" in wrong.numbers


def test_what_chance_turns_round_is_not_out_of_order_unless_it_is_most():
    near = compared("3:1", 1.19, 1.401, 0.5)
    assert configurations.in_order("VLD", [BEST, OTHER, near]).holds
    assert not configurations.in_order("VLD", [OTHER, near]).holds


def test_correlated_estimates_also_agree_on_the_best():
    assert configurations.correlated("FPD", [BEST, OTHER]).holds
    assert not configurations.correlated("FPD", [compared("2:1", 1.3, 1.1, 1), OTHER]).holds
    assert not configurations.correlated("FPD", [BEST, BEST]).holds


@pytest.mark.parametrize("mean_s", [0.9, 1.4])
def test_an_estimate_that_is_too_high_or_far_off_is_not_accurate(mean_s):
    assert configurations.accurate("VLD", [BEST]).holds
    assert not configurations.accurate("VLD", [BEST, compared("1:2", 1.0, mean_s, 1)]).holds


def test_a_network_makes_every_estimate_worse_than_the_worst_without():
    far, near = compared("2:1", 1.0, 2.0, 1), compared("2:1", 1.0, 1.15, 1)
    assert configurations.further_off("FPD", [far], "VLD", [BEST]).holds
    assert not configurations.further_off("FPD", [far, near], "VLD", [OTHER]).holds


def test_underestimation_that_rises_again_does_not_fall():
    assert falling([6.0, 2.0, 1.3, 1.01]).holds
    assert not falling([6.0, 2.0, 2.5, 1.01]).holds
    assert not falling([1.01, 1.02]).holds


# -- re-balancing ---------------------------------------------------------------------------

OPTIMAL = watched([1.0] * 10)
MOVED = watched([1.5] * 5 + [1.4] + [1.0] * 4, (5, "move", "1:2", "2:1"))
RUNS = {"1:2": MOVED, "2:1": OPTIMAL}


def test_a_sub_optimal_start_is_moved_once_and_as_soon_as_can_be():
    assert rebalanced.moved_at_once("VLD", "2:1", 5, RUNS).holds
    assert not rebalanced.moved_at_once("VLD", "2:1", 4, RUNS).holds
    assert not rebalanced.moved_at_once("VLD", "2:1", 5, RUNS | {"1:2": OPTIMAL}).holds
    assert not rebalanced.moved_at_once("VLD", "2:1", 5, RUNS | {"2:1": MOVED}).holds


def test_a_move_that_gains_nothing_is_no_clear_gain():
    assert rebalanced.recovered("VLD", "2:1", 5, RUNS).holds
    slower = watched([1.5] * 10, (5, "move", "1:2", "2:1"))
    no_worse = watched([1.05] * 5 + [1.0] * 5, (5, "move", "1:2", "2:1"))
    assert not rebalanced.recovered("VLD", "2:1", 5, RUNS | {"1:2": slower}).holds
    assert not rebalanced.recovered("VLD", "2:1", 5, RUNS | {"1:2": no_worse}).holds


def test_a_change_that_is_felt_for_long_or_much_costs_more_than_little():
    change = (5, "move", "1:2", "2:1")
    long = watched([1.5] * 5 + [1.4, 1.9] + [1.0] * 3, change)
    much = watched([1.5] * 5 + [9.0] + [1.0] * 4, change)
    assert rebalanced.confined("VLD", "2:1", RUNS).holds
    assert not rebalanced.confined("VLD", "2:1", RUNS | {"1:2": long}).holds
    assert not rebalanced.confined("VLD", "2:1", RUNS | {"1:2": much}).holds
    assert not rebalanced.confined("VLD", "2:1", {"2:1": OPTIMAL}).holds


# -- machines -------------------------------------------------------------------------------

UP = machines.Trial(name="A", target_s=0.5, start=(1, 1), end=(2, 1), cost_s=5.0)
DOWN = machines.Trial(name="B", target_s=1.0, start=(2, 1), end=(1, 1), cost_s=1.0)
ADDED = watched([0.6] * 5 + [3.0] + [0.4] * 4, (5, "up", "1:1", "2:1"))
GIVEN_BACK = watched([0.4] * 5 + [0.9] + [0.7] * 9, (5, "down", "2:1", "1:1"))


def test_a_machine_comes_at_the_first_chance_or_the_claim_does_not_hold():
    assert machines.changed_at_once(UP, 5, ADDED).holds
    assert not machines.changed_at_once(UP, 4, ADDED).holds
    assert not machines.changed_at_once(DOWN, 5, ADDED).holds
    assert not machines.changed_at_once(UP, 5, watched([0.6] * 10)).holds


def test_a_target_that_was_kept_before_needed_no_machine():
    assert machines.kept_after(UP, 5, ADDED).holds
    assert not machines.kept_after(UP, 5, watched([0.4] * 10)).holds


def test_a_target_is_kept_stably_with_more_machines_and_on_average_with_fewer():
    assert not machines.kept_after(UP, 5, watched([0.6] * 5 + [3.0] + [0.4] * 3 + [0.51])).holds
    once = watched([0.4] * 5 + [0.9] + [0.7] * 8 + [1.1])
    assert machines.kept_after(DOWN, 5, GIVEN_BACK).holds
    assert machines.kept_after(DOWN, 5, once).holds
    assert not machines.kept_after(DOWN, 5, watched([0.4] * 6 + [1.1] * 9)).holds


def test_a_target_must_be_kept_from_when_the_machine_is_there():
    slow = watched([0.6] * 8 + [0.4] * 2, (5, "up", "1:1", "2:1"))
    assert not machines.kept_after(UP, 5, slow).holds
    came = MachineChange(kind="added", at_s=7 * 60.0, took_s=120.0, ready_s=100.0)
    assert machines.kept_after(UP, 5, replace(slow, machines=(came,))).holds
    late = replace(slow, machines=(replace(came, at_s=9 * 60.0),))
    assert not machines.kept_after(UP, 5, late).holds


def test_adding_machines_must_cost_more_and_both_must_pass():
    costs_more = partial(machines.adding_costs_more, paper_s=(5.0, 1.0))
    assert costs_more(5, ADDED, GIVEN_BACK).holds
    assert "after adding: 3000 ms (the paper: 5000 ms)" in costs_more(5, ADDED, ADDED).numbers
    assert not costs_more(5, GIVEN_BACK, ADDED).holds
    lasting = watched([0.6] * 5 + [3.0] + [0.4] * 3 + [3.0])
    assert not costs_more(5, lasting, GIVEN_BACK).holds


def test_machines_must_become_as_many_as_the_processors_need():
    as_many = partial(machines.as_many_as_needed, UP, NodeSize(slots=1))
    assert as_many([Step(0.0, 2), Step(5.2, 3, "in 4 s")]).holds
    assert (
        "3 from minute 5.2 on (in 4 s)" in as_many([Step(0, 2), Step(5.2, 3, "in 4 s")]).numbers
    )
    assert not as_many([Step(0.0, 2)]).holds
    assert not as_many([Step(0.0, 2), Step(5.0, 3), Step(6.0, 2)]).holds


# -- loads that change ----------------------------------------------------------------------

STEPS = ((9, "up", "3:5", "4:6"), (24, "down", "4:6", "2:4"))
DAY = watched([0.5] * 9 + [5.0] + [0.5] * 14 + [0.6] * 6, *STEPS)
QUIET = watched([0.5] * 30)


def test_most_days_must_show_what_the_paper_saw():
    assert changing_load.kinds(3, ("up", "down"), [DAY, DAY, QUIET]).holds
    assert not changing_load.kinds(3, ("up", "down"), [DAY, QUIET, QUIET]).holds
    assert not changing_load.kinds(6, (), [DAY, DAY, QUIET]).holds


def test_the_first_step_is_the_papers():
    assert changing_load.first_step(3, "3:5", "4:6", [DAY]).holds
    assert not changing_load.first_step(3, "3:5", "5:6", [DAY]).holds
    assert not changing_load.first_step(3, "3:5", "4:6", [QUIET]).holds


def test_an_answer_takes_about_a_window():
    assert changing_load.answers(3, [6, 21], [DAY]).holds
    assert not changing_load.answers(6, [6, 21], [DAY]).holds
    assert not changing_load.answers(3, [6, 21], [QUIET]).holds


def test_adding_processors_must_cost_more_than_removing_some():
    assert changing_load.adding_costs_more([DAY, QUIET]).holds
    assert not changing_load.adding_costs_more([QUIET]).holds
    assert not changing_load.adding_costs_more([watched([0.5] * 30, *STEPS)]).holds


# -- models and overhead --------------------------------------------------------------------


def bar(per_s, allocation, measured_s, mmk_s, gigk_s):
    return compared(allocation, mmk_s, measured_s, 1, per_s=per_s, gigk_s=gigk_s)


LOW, HIGH = bar(5, "2:4", 1.0, 0.8, 0.9), bar(6, "2:4", 1.5, 0.9, 1.6)


def test_a_preference_is_the_least_mean_at_every_load():
    runs = [bar(5, "a", 1, 1.0, 1), bar(5, "b", 1, 2.0, 1), bar(6, "a", 1, 2.0, 1)]
    higher, lower = (bar(6, "b", 1, mmk_s, 1) for mmk_s in (3.0, 1.0))
    prefers = partial(bursts.prefers, mean_s=lambda run: run.mmk_s)
    assert prefers("M/M/k", "a", [*runs, higher]).holds
    assert not prefers("M/M/k", "b", [*runs, higher]).holds
    assert not prefers("M/M/k", "a", [*runs, lower]).holds


def test_the_extended_model_is_closer_each_time_or_the_claim_does_not_hold():
    assert bursts.closer([LOW, HIGH]).holds
    assert not bursts.closer([LOW, bar(6, "2:4", 1.5, 1.4, 1.7)]).holds
    assert not bursts.closer([LOW, bar(6, "2:4", 1.5, 1.8, 1.6)]).holds


def test_underestimating_less_at_a_higher_load_is_against_the_claim():
    assert bursts.worse_with_load([HIGH, LOW]).holds
    assert not bursts.worse_with_load([LOW, bar(6, "2:4", 1.05, 0.9, 1.0)]).holds


@pytest.mark.parametrize("power", [0, 2])
def test_constant_and_quadratic_times_are_not_linear(power):
    ks = (12, 24, 48, 96, 192)
    assert overhead.linear({k: 0.01 + 0.0004 * k for k in ks}).holds
    assert not overhead.linear({k: 0.01 + 1e-6 * k**power for k in ks}).holds


def test_decisions_and_measuring_have_their_bounds():
    assert overhead.below_the_papers({12: 0.1, 192: 1.2}).holds
    assert not overhead.below_the_papers({12: 0.1, 192: 3.0}).holds
    assert overhead.independent({12: 0.1, 192: 0.11}).holds
    assert not overhead.independent({12: 0.1, 192: 0.3}).holds
    assert overhead.by_reports({12: 0.1, 24: 0.2, 192: 1.0}).holds
    assert not overhead.by_reports({12: 0.1, 24: 0.1, 192: 0.1}).holds

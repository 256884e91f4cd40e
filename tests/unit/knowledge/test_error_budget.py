"""The error budget: slices are judged by births, each once, and the level follows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.decide.objective import Objective
from sojourn.decide.target import Target
from sojourn.knowledge import ErrorBudget
from sojourn.measure.births import Births

OBJECTIVE = Objective(target=Target("p95", 3.5), slice_s=60.0, kept=0.99)
BUDGET = ErrorBudget(objective=OBJECTIVE)
START = BUDGET.level


def saw(budget, at_s, *births, since_s=None, alone=0.0, cause=""):
    since_s = at_s - 3 if since_s is None else since_s
    return budget.saw(since_s, at_s, births, late_alone=lambda: alone, cause=cause)


def ended(number, *, born=100, late=0, budget=BUDGET, **others):
    """Return the budget once a slice with these roots can be judged."""
    births = Births(slice=number, completed=born, in_time=born - late)
    return saw(budget, 60 * (number + 1) + 4, births, **others)


def test_a_slice_is_judged_when_the_target_has_passed_after_its_end():
    births = Births(slice=0, completed=100, in_time=95)
    assert saw(BUDGET, 63, births).judged == 0
    judged = saw(saw(BUDGET, 63, births), 63.5)
    assert (judged.judged, judged.missed) == (1, 0)
    (one,) = judged.latest
    assert (one.slice.since_s, one.slice.until_s, one.slice.born, one.kept) == (
        0,
        60,
        100,
        True,
    )
    assert saw(judged, 66).latest == ()


def test_a_target_below_the_latency_without_waiting_does_not_raise_the_level():
    """Else processors would be added without end, and without any use."""
    missed = ended(0, late=50, alone=0.06)
    assert (missed.missed, missed.level) == (1, START)
    assert missed.causes == {"too many roots are late without any waiting": 1}
    assert ended(0, late=50, alone=0.04).level == START  # it has too few roots to be judged


def test_open_roots_are_late():
    still = Births(slice=0, open=6)
    judged = saw(saw(BUDGET, 60, Births(slice=0, completed=94, in_time=94), still), 64, still)
    assert (judged.judged, judged.missed) == (1, 1)
    done_meanwhile = Births(slice=0, completed=6, in_time=6)
    judged = saw(
        saw(BUDGET, 60, Births(slice=0, completed=94, in_time=94), still), 64, done_meanwhile
    )
    assert judged.missed == 0


def test_what_completes_after_it_was_judged_changes_nothing():
    judged = ended(0, late=50)
    assert saw(judged, 70, Births(slice=0, completed=10, in_time=10)) == replace(
        judged, latest=()
    )


def test_few_roots_are_joined_with_the_next_slice():
    budget = ended(0, born=15, late=2)
    assert budget.judged == 0
    (one,) = ended(1, born=25, budget=budget).latest
    assert (one.slice.since_s, one.slice.until_s, one.slice.born, one.kept) == (
        0,
        120,
        40,
        True,
    )


def test_the_level_rises_with_a_miss_and_falls_while_it_is_kept():
    missed = ended(0, late=6)
    assert missed.level == pytest.approx(START + 0.1 * 0.99)
    assert ended(1, budget=missed).level == pytest.approx(missed.level - 0.1 * 0.01)


@given(kept=st.lists(st.booleans(), min_size=1, max_size=60))
def test_the_level_is_the_budget(kept):
    """It is where it began, plus the misses beyond those permitted, each a tenth."""
    budget = BUDGET
    for number, good in enumerate(kept):
        budget = ended(number, late=0 if good else 50, budget=budget)
    missed, permitted = kept.count(False), 0.01 * len(kept)
    assert budget.missed == missed
    assert budget.level == pytest.approx(START + 0.1 * (missed - permitted))


@pytest.mark.parametrize("at_s", [1, 59, 61])
def test_a_cause_that_no_margin_prevents_excuses_a_miss(at_s):
    budget = BUDGET.excused(at_s - 1, at_s, "a batch ended")
    missed = ended(0, late=50, budget=budget)
    assert (missed.missed, dict(missed.causes)) == (1, {"a batch ended": 1})
    assert missed.level == START
    kept = ended(0, budget=budget)
    assert (kept.missed, dict(kept.causes)) == (0, {})
    assert kept.level < START


def test_a_cause_long_before_a_slice_excuses_nothing():
    missed = ended(1, late=50, budget=BUDGET.excused(50, 55, "a batch ended"))
    assert (missed.missed, dict(missed.causes)) == (1, {})


def test_slices_without_metrics_are_excused():
    budget = saw(BUDGET, 30, since_s=20, cause="metrics were not usable")
    assert dict(ended(0, late=50, budget=budget).causes) == {"metrics were not usable": 1}


def test_a_mean_waits_for_its_roots_unless_they_are_too_old_already():
    mean = ErrorBudget(objective=Objective(target=Target("mean", 1.0)))
    quick = Births(slice=0, completed=90, in_time=0, sum_s=45.0)
    waits = saw(saw(mean, 60, quick), 62, Births(slice=0, open=10, open_s=30.0))
    assert waits.judged == 0
    late = saw(waits, 90, Births(slice=0, open=10, open_s=300.0))
    assert (late.judged, late.missed) == (1, 1)
    in_time = saw(waits, 63, Births(slice=0, completed=10, sum_s=40.0))
    assert (in_time.judged, in_time.missed) == (1, 0)


def test_another_objective_begins_with_the_next_slice_and_keeps_the_level():
    budget = replace(BUDGET, since=2)
    assert ended(1, late=50, budget=budget).judged == 0
    assert ended(2, late=50, budget=budget).judged == 1


def through(slices, budget=BUDGET):
    """Return the budget after slices, each of which was missed or not."""
    for number, missed in enumerate(slices):
        budget = ended(number, late=50 if missed else 0, budget=budget)
    return budget


def test_a_burn_rate_is_misses_over_those_that_are_permitted():
    assert BUDGET.burn_rate(3600) is None
    calm = through([False] * 600)
    assert calm.burn_rate(3600) == 0
    # three of the last hour, and three more in the five hours before
    burnt = through([False] * 300 + [True] * 3 + [False] * 260 + [True] * 3 + [False] * 34)
    assert burnt.burn_rate(3600) == pytest.approx(5.0)
    assert burnt.burn_rate(6 * 3600) == pytest.approx(6 / 3.6)


def test_what_is_left_is_that_of_the_last_day():
    assert BUDGET.left == 14
    day = through([True] * 4 + [False] * 1430)
    assert day.left == 10
    later = through([True] * 4 + [False] * 1450)
    assert (later.missed, later.left) == (4, 14)
    assert through([True] * 20).left == -6
    assert len(later.periods) == 288


def test_roots_are_counted_with_their_slices():
    both = through([True, False])
    assert (both.born, both.in_time) == (200, 150)

from math import inf

import numpy as np
import pytest

from sojourn.act.latency import at_least_s
from sojourn.act.policy.drs.requirement import stricter, underestimated
from sojourn.decide.plan import Expected, Plan
from sojourn.decide.target import Target
from sojourn.knowledge import Decision, Knowledge
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from unit.act.policy.turns import ONE

TARGET = Target("mean", 3.0)


def looked(at_s, took_s, *, roots=300, per_s=30.0):
    times = Sketch.of([took_s] * roots)
    return Observation(
        since_s=at_s - 10, at_s=at_s, arrivals_per_s=per_s, sums=times, completions=times
    )


def known(*, expected_s, took_s, **fields):
    """Return what is known where one time was expected, and another measured."""
    expected = Expected(statistic="mean", seconds=expected_s, arrivals_per_s=30.0)
    same = Plan.here({"a": 40}, reason="a test", expected=expected)
    held = Decision(at_s=10, before=same, after=same)
    begun = Knowledge(topology=ONE, plan=same, seen=looked(10, took_s)).did(held)
    return Knowledge(
        topology=ONE,
        plan=same,
        episodes=begun.episodes,
        seen=looked(20, took_s, **fields),
    )


def test_waits_are_as_many_times_as_long_as_they_were_measured():
    lately = known(expected_s=1.5, took_s=2.5)
    assert underestimated(lately, TARGET, 1.0, surely=0.0) == pytest.approx(3, rel=0.02)


def test_a_model_that_overestimates_is_left_alone():
    lately = known(expected_s=2.5, took_s=1.5)
    assert underestimated(lately, TARGET, 1.0, surely=0.0) == 1.0


@pytest.mark.parametrize("fields", [{"per_s": 90.0}, {"roots": 20}])
def test_another_load_or_a_few_roots_say_nothing(fields):
    lately = known(expected_s=1.5, took_s=2.5, **fields)
    assert underestimated(lately, TARGET, 1.0, surely=0.0) == 1.0


def test_beyond_some_times_it_is_no_longer_the_waits():
    lately = known(expected_s=1.5, took_s=99.0)
    assert underestimated(lately, TARGET, 1.0, surely=0.0) == 4.0
    assert underestimated(lately, TARGET, inf, surely=0.0) == 1.0


def test_what_is_sure_is_less_than_what_is_likely():
    times = np.random.default_rng(1).exponential(2.0, 1000)
    seen = Observation(since_s=0, at_s=10, sums=Sketch.of(times), completions=Sketch.of(times))
    for statistic in ("mean", "p95"):
        likely, sure = (at_least_s([seen], statistic, surely) for surely in (0.0, 2.0))
        assert 0.5 * likely < sure < likely


def test_a_target_at_its_floor_leaves_some_wait():
    assert stricter(Target("mean", 1.0), 1.0, 2.0).seconds == pytest.approx(1.02)

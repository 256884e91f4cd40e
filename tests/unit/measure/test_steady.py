import numpy as np
import pytest

from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.smooth import steady, timed_longer


def looked(at_s, per_s, *, lasted_s=10.0, service_s=0.1, samples=50, rng=None, cpu_s=None):
    """Return some seconds of a load, with chance of its own if *rng* is given."""
    if rng is not None:
        per_s = rng.poisson(per_s * lasted_s) / lasted_s
        service_s = rng.gamma(samples, service_s / samples)
    operator = ObservedOperator(
        name="a",
        wanted=1,
        running=1,
        backlog=0,
        arrivals_per_s=per_s,
        served_per_s=per_s,
        served=per_s * lasted_s,
        service=Moments(samples, samples * service_s, 2 * samples * service_s**2),
        wait=Moments(),
        cpu_s=cpu_s,
    )
    return Observation(
        since_s=at_s - lasted_s,
        at_s=at_s,
        operators={"a": operator},
        arrivals_per_s=per_s,
        completed_per_s=per_s,
    )


def history(*loads, lasted_s=10.0, rng=None, **fields):
    return [
        looked(lasted_s * i, load, lasted_s=lasted_s, rng=rng, **fields)
        for i, load in enumerate(loads, 1)
    ]


def test_a_steady_load_is_averaged_for_long():
    rng = np.random.default_rng(1)
    lengths = [steady(history(*[50] * 40, rng=rng)).lasted_s for _ in range(40)]
    assert np.median(lengths) == 300
    assert np.mean(lengths) > 200


@pytest.mark.parametrize("turns", [1, 2, 3, 5])
def test_a_load_that_doubled_is_seen_at_once(turns):
    seen = steady(history(*[50] * 30, *[100] * turns))
    assert seen.arrivals_per_s == 100


def test_a_load_that_halved_is_seen_within_the_least_window():
    assert steady(history(*[100] * 30, *[50] * 6)).arrivals_per_s == pytest.approx(50)


def test_a_slow_rise_is_not_averaged_away():
    rising = [50 + i for i in range(60)]
    assert steady(history(*rising)).arrivals_per_s > 100


@pytest.mark.parametrize("lasted_s", [1.0, 3.0, 10.0, 60.0])
def test_looks_of_any_length_are_averaged_for_as_long(lasted_s):
    rng, looks = np.random.default_rng(2), round(600 / lasted_s)
    lengths = [
        steady(history(*[50] * looks, lasted_s=lasted_s, rng=rng)).lasted_s for _ in range(30)
    ]
    assert np.median(lengths) == pytest.approx(300, rel=0.02)


def test_chance_in_looks_of_a_second_is_no_step():
    """Of a thousand looks at 13 roots per second, one has 26 or more by chance."""
    rng = np.random.default_rng(3)
    past = history(*[13] * 1000, lasted_s=1.0, rng=rng)
    shortest = min(steady(past[:until]).lasted_s for until in range(60, 1000))
    assert shortest >= 60


@pytest.mark.parametrize(("load", "looks"), [(26, 4), (39, 2), (3, 7)])
def test_a_step_is_seen_within_seconds(load, looks):
    seen = steady(history(*[13] * 300, *[load] * looks, lasted_s=1.0))
    assert seen.arrivals_per_s == load


def test_few_records_take_longer_to_be_sure_of():
    seen = steady(history(*[2] * 30, 3))
    assert seen.lasted_s == 300


def test_service_times_are_averaged_while_they_stay_the_same():
    past = history(*[50] * 12, service_s=0.1) + [
        looked(130.0 + 10 * i, 50, service_s=0.3) for i in range(8)
    ]
    assert steady(past).operators["a"].service_s == pytest.approx(0.3, rel=0.2)
    same = history(*[50] * 20, service_s=0.1, samples=3)
    assert steady(same).operators["a"].samples == 60
    assert timed_longer(same[-1], same).operators["a"].samples == 60


def test_what_is_not_usable_is_left_out_and_said():
    past = [*history(*[50] * 10), Observation.unusable(100, 110, "no answer")]
    seen = steady(past)
    assert (seen.usable, seen.reason) == (False, "no answer")
    assert steady([*past, looked(120, 50)]).arrivals_per_s == pytest.approx(50)


def test_nothing_at_all_arriving_is_a_load_too():
    assert steady(history(*[0] * 20)).arrivals_per_s == 0
    assert steady(history(*[0] * 20, 5)).arrivals_per_s == 5


def test_an_operator_that_was_not_there_before_starts_anew():
    past = history(*[50] * 10)
    past[3] = Observation(
        since_s=30, at_s=40, operators={}, arrivals_per_s=50, completed_per_s=50
    )
    assert timed_longer(past[-1], past).operators["a"].samples == 50 * 6


def test_what_computes_is_averaged_for_as_long_as_service_times():
    """A service time of long ago with the CPU seconds of now would not fit together."""
    slow = history(*[50] * 12, service_s=0.5, cpu_s=0.4)
    fast = [looked(120 + 10.0 * i, 50, service_s=0.1, cpu_s=0.01 * i) for i in range(1, 13)]
    seen = timed_longer(fast[-1], [*slow, *fast])
    assert seen.operators["a"].service_s == pytest.approx(0.1)
    assert seen.operators["a"].cpu_s == pytest.approx(0.065)
    assert timed_longer(looked(10, 50), history(50)).operators["a"].cpu_s is None

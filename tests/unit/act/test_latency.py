"""What was measured to be reached is not impossible, whatever the model says."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal, aim
from sojourn.act.latency import floor_s, lowest_s
from sojourn.act.policy.drs import Drs
from sojourn.decide.plan import HERE, Node, Plan
from sojourn.decide.target import Target
from sojourn.knowledge import Knowledge
from sojourn.loop import Site, step
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch

ONE_MACHINE = Site(nodes=[Node(HERE)])

# One record in fifty takes ten times as long as all the others.
USUAL_S, LONG_S, LONG = 0.02, 0.2, 0.02
PER_S, EVERY_S = 40.0, 10.0
EASY = Target("p95", 0.5)
ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=PER_S, into="a"),),
    operators=(sj.Operator(name="a", service_s=USUAL_S),),
)


def look(at_s, running, rng):
    """Return what is measured of services that are nearly constant but for a few."""
    number = int(PER_S * EVERY_S)
    times = np.where(rng.random(number) < LONG, LONG_S, USUAL_S)
    waits = rng.exponential(0.004, number)  # some wait, and it is still less than the model's
    latencies = Sketch.of(times + waits)
    return Observation(
        since_s=at_s - EVERY_S,
        at_s=at_s,
        arrivals_per_s=PER_S,
        completed_per_s=PER_S,
        operators={
            "a": ObservedOperator(
                name="a",
                wanted=running,
                running=running,
                backlog=0,
                arrivals_per_s=PER_S,
                served_per_s=PER_S,
                served=float(number),
                service=Moments(number, float(times.sum()), float((times**2).sum())),
                wait=Moments(number, float(waits.sum()), float((waits**2).sum())),
            )
        },
        completions=latencies,
        sums=latencies,
    )


def run(target):
    """Return the decisions of drs on such a load, once *target* replaces an easy one."""
    rng, decisions = np.random.default_rng(1), []
    known = Knowledge(topology=ONE, plan=Plan.here({"a": 3}))
    for number in range(1, 21):
        k = known.allocation["a"]
        policy = Drs(goal=Goal(target=EASY if number <= 10 else target, most=40))
        known, decision = step(known, look(EVERY_S * number, k, rng), policy, ONE_MACHINE)
        known = replace(known.did(decision), plan=decision.after)
        decisions.append(decision)
    return known, decisions[10:]


def test_few_long_records_make_percentiles_of_the_model_too_high():
    """Two moments do not tell a few long records from many that vary: this is the cause."""
    known, _ = run(Target("p95", 0.06))
    floor = floor_s(known.topology, model="gigk", statistic="p95")
    assert floor > 0.06 > 1.5 * lowest_s(known.observations, "p95")


def test_a_target_that_is_met_is_not_called_impossible():
    _, decisions = run(Target("p95", 0.06))
    reasons = [decision.reason for decision in decisions]
    assert not [reason for reason in reasons if "no number of processors" in reason]
    assert decisions[-1].after.allocation["a"] <= 3, reasons


def test_of_a_target_below_all_that_was_measured_the_measured_value_is_said():
    found = aim(ONE, Goal(target=Target("p95", 0.01)), lowest_s=0.031)
    assert found.note == (
        "p95 ≤ 0.01 s may be out of reach: the lowest that was measured is 0.031 s"
    )
    _, decisions = run(Target("p95", 0.015))
    assert any("the lowest that was measured is 0.0" in d.reason for d in decisions)


@pytest.mark.parametrize("statistic", ["mean", "p50", "p95", "p99"])
def test_the_lowest_is_above_the_true_value_by_what_chance_may_add(statistic):
    rng = np.random.default_rng(2)
    looks = [look(EVERY_S * number, 3, rng) for number in range(1, 61)]
    lowest = lowest_s(looks, statistic)
    times = np.where(rng.random(10**6) < LONG, LONG_S, USUAL_S) + rng.exponential(0.004, 10**6)
    true = times.mean() if statistic == "mean" else np.quantile(times, int(statistic[1:]) / 100)
    assert true <= lowest <= 1.6 * true


def test_of_few_roots_or_a_start_nothing_is_known():
    rng = np.random.default_rng(3)
    looks = [look(EVERY_S * number, 3, rng) for number in range(1, 11)]
    assert lowest_s(looks[:2], "p95") == inf
    assert lowest_s([replace(each, warming=True) for each in looks], "p95") == inf
    assert lowest_s([Observation.unusable(0, 1, "no answer")] * 9, "mean") == inf
    assert lowest_s((), "mean") == inf

"""Targets that cannot be met: said as soon as what was measured shows it, and once."""

from itertools import islice

import pytest

import sojourn as sj
from live_engine import LiveSimulator
from sojourn.act.policy import policy
from sojourn.decide.plan import Plan
from sojourn.knowledge import Knowledge
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.service.first_plan import bounded
from sojourn.service.floor import floor_warning
from sojourn.service.orders import LoopSettings
from sojourn.service.status import status
from sojourn.service.supervisor import Supervisor

BELOW = "no number of processors reaches mean ≤ 0.06 s: without any waiting it is still 0.07 s"
CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(
        sj.Operator(name="a", service_s=0.05, emits={"b": 1}),
        sj.Operator(name="b", service_s=0.02),
    ),
)


def begun(target_s):
    engine = LiveSimulator()
    engine.start(CHAIN, Plan.here({"a": 4, "b": 2}))

    def make(target, most):
        return policy("drs", target=target, most=most), f"{target}, {most}"

    return Supervisor(
        engine, CHAIN, make, LoopSettings(target=sj.Target("mean", target_s), most=20)
    )


def test_a_target_below_what_operators_take_is_warned_of():
    said = floor_warning(CHAIN, sj.Target("mean", 0.06), CHAIN.operator)
    assert said.startswith(BELOW)
    assert not floor_warning(CHAIN, sj.Target("mean", 0.08), CHAIN.operator)


def test_only_what_is_known_counts():
    """What the others take can only make it worse."""
    assert not floor_warning(CHAIN, sj.Target("mean", 0.06), {"a"})
    assert "still 0.05 s" in floor_warning(CHAIN, sj.Target("mean", 0.04), {"a"})
    assert not floor_warning(CHAIN, sj.Target("p95", 0.001), ())


def looks(took_s):
    """Return observations of a thousand roots each that took this long."""
    times = Sketch.of([took_s] * 1000)
    return [
        Observation(since_s=at_s - 10, at_s=at_s, completions=times, sums=times)
        for at_s in (10.0, 20.0, 30.0)
    ]


def test_what_was_reached_is_not_called_impossible():
    """By the model the p95 of services alone is 0.17 s; it was measured at 0.1 s."""
    low, lower = sj.Target("p95", 0.12), sj.Target("p95", 0.05)
    assert "no number of processors" in floor_warning(CHAIN, low, CHAIN.operator)
    assert floor_warning(CHAIN, low, CHAIN.operator, looks(0.1)) == ""
    assert floor_warning(CHAIN, lower, CHAIN.operator, looks(0.1)) == (
        "p95 ≤ 0.05 s may be out of reach: the lowest that was measured is 0.1 s"
    )
    assert "no number" in floor_warning(CHAIN, low, CHAIN.operator, looks(0.3))


def test_a_target_that_is_met_is_accepted_without_a_warning(monkeypatch):
    running = begun(0.2)
    list(islice(running.turns(), 40))
    observations = property(lambda _known: tuple(looks(0.1)))
    monkeypatch.setattr(Knowledge, "observations", observations)
    assert running.set_goal(sj.Target("p95", 0.12), None) == "now p95 ≤ 0.12 s, 20"
    assert running.warning == ""


def test_what_was_measured_tells_once_that_the_target_is_too_low():
    running = begun(0.03)
    episodes = list(islice(running.turns(), 40))
    told = [e for e in episodes if not e.looked]
    assert len(told) == 1
    assert "no number of processors reaches mean ≤ 0.03 s" in told[0].decision.reason
    assert running.warning == status(running).warning != ""


def test_another_target_is_judged_at_once():
    running = begun(0.2)
    list(islice(running.turns(), 5))
    assert running.warning == ""
    said = running.set_goal(sj.Target("mean", 0.03), None)
    assert said.startswith("now mean ≤ 0.03 s, 20; but no number of processors reaches")
    assert [e.decision.reason.split("; but ")[1] for e in running.untold()] == [running.warning]
    assert "but" not in running.set_goal(sj.Target("mean", 0.2), None)
    assert status(running).warning == ""


@pytest.mark.parametrize(
    ("cores", "asked", "most", "said"),
    [
        (2, {}, 32, "at most 32 processors (16 per core; --max-processors changes it)"),
        (1, {}, 32, "at most 32 processors (for 1 core; --max-processors changes it)"),
        (8, {}, 128, "at most 128 processors (16 per core; --max-processors changes it)"),
        (2, {"a": 60}, 61, "at most 61 processors (for 2 cores; --max-processors changes it)"),
    ],
)
def test_where_nobody_says_it_the_cores_bound_the_processors(
    monkeypatch, cores, asked, most, said
):
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)))
    assert bounded(CHAIN, asked, None) == (most, [said])
    assert bounded(CHAIN, asked, 7) == (7, [])
    assert bounded(CHAIN, {}, None, cores=12.0)[0] == 192  # of a cluster

"""Targets that cannot be met, and operators that are idle although records wait."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

import sojourn as sj
from live_engine import LiveSimulator
from sojourn.act.policy import policy
from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.engine import health
from sojourn.knowledge import Knowledge
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.service.first_plan import Assumptions, bounded
from sojourn.service.orders import LoopSettings
from sojourn.service.status import status
from sojourn.service.supervisor import Supervisor
from sojourn.service.warnings import Stalls, floor_warning
from supervised import begun, turned
from unit.act.policy.turns import CHAIN as IDLE
from unit.act.policy.turns import seen

BELOW = "no number of processors reaches mean ≤ 0.06 s: without any waiting it is still 0.07 s"
CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(
        sj.Operator(name="a", service_s=0.05, emits={"b": 1}),
        sj.Operator(name="b", service_s=0.02),
    ),
)


def aimed(target_s):
    engine = LiveSimulator()
    engine.start(CHAIN, Plan.here({"a": 4, "b": 2}))

    def make(target, most):
        return policy("drs", target=target, most=most), f"{target}, {most}"

    return Supervisor(
        engine,
        CHAIN,
        make,
        LoopSettings(objective=sj.Objective(target=sj.Target("mean", target_s)), most=20),
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
    running = aimed(0.2)
    list(islice(running.turns(), 40))
    observations = property(lambda _known: tuple(looks(0.1)))
    monkeypatch.setattr(Knowledge, "observations", observations)
    assert running.set_goal(sj.Target("p95", 0.12), None) == "now p95 ≤ 0.12 s, 20"
    assert running.warning == ""


def test_what_was_measured_tells_once_that_the_target_is_too_low():
    running = aimed(0.03)
    episodes = list(islice(running.turns(), 40))
    told = [e for e in episodes if not e.looked]
    assert len(told) == 1
    assert "no number of processors reaches mean ≤ 0.03 s" in told[0].decision.reason
    assert running.warning == status(running).warning != ""


def test_another_target_is_judged_at_once():
    running = aimed(0.2)
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


def look(at_s, *, done=(), backlog=9):
    """Return five seconds in which only the operators in *done* did something."""
    served = dict.fromkeys(done, 1.0)
    return seen(
        IDLE,
        {"a": 1, "b": 1},
        at_s=at_s,
        lasted_s=5.0,
        per_s=1.0,
        served_per_s={"a": 0.0, "b": 0.0, **served},
        at_work={"a": 0, "b": 0},
        backlog={"a": backlog, "b": backlog},
    )


def test_a_stall_is_told_with_its_beginning_once_it_lasts():
    stalls = Stalls(midnight_s=14 * 3600)
    told = []
    for at_s in (105.0, 110.0, 115.0, 120.0):
        stalls.saw(look(at_s), IDLE)
        told.append(stalls.notices)
    assert told[:2] == [(), ()]
    assert told[2] == told[3]  # the same text for as long as it lasts
    assert told[2][0].startswith(
        "a, b: no record was processed since 14:01:40 although records wait; processors are"
    )
    assert "sojourn logs" in told[2][0]


def test_it_is_over_when_a_record_is_done():
    stalls = Stalls()
    for at_s in (5.0, 10.0, 15.0):
        stalls.saw(look(at_s), IDLE)
    stalls.saw(look(20.0, done=["a"]), IDLE)
    assert [text.partition(":")[0] for text in stalls.notices] == ["b"]
    stalls.saw(look(25.0, done=["a", "b"]), IDLE)
    assert stalls.notices == ()


def test_a_look_that_is_not_usable_neither_ends_nor_begins_it():
    stalls = Stalls()
    for at_s in (5.0, 10.0, 15.0):
        stalls.saw(look(at_s), IDLE)
    stalls.saw(Observation.unusable(15.0, 20.0, "no answer"), IDLE)
    assert len(stalls.notices) == 1


def test_the_notice_is_with_those_of_the_engine():
    """`top`, the output of the run, the JSON and Prometheus all have it from there."""
    running = begun(Static())
    turned(running, 1)
    before = health(running.engine).notices
    (episode,) = running.knowledge.episodes
    operators = {
        name: replace(operator, served=0.0, at_work=0, backlog=9)
        for name, operator in episode.observation.operators.items()
    }
    idle = replace(episode.observation, operators=operators)
    running.stalls.saw(idle, running.topology)
    running.stalls.saw(replace(idle, since_s=1.0, at_s=30.0), running.topology)
    assert len(running.health().notices) == len(before) + 1
    assert "a, b: no record was processed" in status(running).health.notices[-1]


def test_turns_of_the_loop_are_looked_at():
    running = begun(Static())
    turned(running, 3)
    assert running.stalls.notices == ()


def test_slices_with_few_roots_are_noted_only_if_the_load_is_known():
    objective = sj.Objective(target=sj.Target("p95", 3.5))
    video = str(Path(__file__).parents[3] / "examples" / "vld.yaml")
    (note,) = Assumptions.at(video, {"frames": 0.1}, simulated=True).notes(objective)
    assert note.startswith("slices of 60 s have about 6 roots, but to keep 99% they need ")
    assert Assumptions.at(video, {"frames": 13.0}, simulated=True).notes(objective) == ()
    unrated = Assumptions.at("unit.spark.host.application:app", {}, simulated=False)
    assert unrated.notes(objective) == ()

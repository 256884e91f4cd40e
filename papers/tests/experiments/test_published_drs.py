"""DRS as published: what it averages, and what it does not look at."""

from dataclasses import replace

import pytest

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.drs.caution import Caution
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.knowledge import Knowledge
from sojourn.measure.aggregate import aggregate
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn_papers.experiments.application import VLD
from sojourn_papers.experiments.bench import Bench, Conditions
from sojourn_papers.experiments.on_simulator import simulated
from sojourn_papers.experiments.published_drs import Minutes, published
from sojourn_papers.experiments.timeline import Schedule, watch

ENOUGH = VLD.allocation(10, 11, 1)


@pytest.fixture(scope="module")
def seen():
    with simulated(Conditions(workload=VLD.workload(180, 1), seed=1)) as engine:
        engine.start(VLD.topology, Plan.here(ENOUGH))
        pulls = [engine.observe(60.0 * minute) for minute in (1, 2, 3)]
    return [aggregate(pull, VLD.topology, every_s=60) for pull in pulls]


def test_minutes_count_alike_however_many_roots_they_had(seen):
    few = replace(seen[0], completions=Sketch.of([1.0]))
    many = replace(seen[1], completions=Sketch.of([3.0] * 1000))
    assert Minutes(2)([few, many]).mean_s == pytest.approx(2.0)
    assert Minutes(1)([few, many]).mean_s == pytest.approx(3.0)


def test_the_latest_load_is_that_of_the_last_minute(seen):
    averaged, latest = Minutes(3)(seen), Minutes(3, latest_load=True)(seen)
    assert latest.arrivals_per_s == seen[-1].arrivals_per_s != averaged.arrivals_per_s
    match = latest.operators["match"]
    assert match.arrivals_per_s == seen[-1].operators["match"].arrivals_per_s
    assert match.service == averaged.operators["match"].service


def test_what_cannot_be_used_stays_so(seen):
    broken = Observation.unusable(180, 240, "the reports are gone")
    assert not Minutes(3, latest_load=True)([*seen, broken]).usable
    assert Minutes(3)([broken]).reason == "the reports are gone"


def test_passive_until_it_may_act_and_then_at_once():
    policy = published(Goal(most=22, model="mmk"), smooth=Minutes(6))
    schedule = Schedule(minutes=6, first=4)
    run = watch(Bench(engine=simulated), VLD, (8, 12, 2), policy, schedule)
    assert [(c.minute, c.kind, c.after) for c in run.changes] == [(4.0, "move", "10:11:1")]
    assert [m.allocation for m in run.minutes] == ["8:12:2"] * 4 + ["10:11:1"] * 2


def test_a_backlog_does_not_keep_processors_where_they_are(seen):
    """Our own policy works it off first; the published scheduler does not know of it."""
    full = {name: replace(o, backlog=10_000) for name, o in seen[0].operators.items()}
    knowledge = Knowledge(topology=VLD.topology, plan=Plan.here(VLD.allocation(8, 12, 2)))
    told = knowledge.saw(replace(seen[0], operators=full))
    goal = Goal(most=22, model="mmk")
    moved = published(goal, smooth=Minutes(1))(told).allocation
    assert moved != told.allocation
    assert sum(moved.values()) == told.plan.processors
    ours = Drs(goal=goal, caution=Caution(t_ra_s=0, confirm_s=0))
    assert ours(told).allocation == told.allocation


def test_processors_are_taken_away_only_below_t_min():
    low_s = {30.0: ["down"], 0.1: []}
    for t_min_s, kinds in low_s.items():
        policy = published(
            Goal(target=Target("mean", 60.0), model="mmk"), smooth=Minutes(1), low_s=t_min_s
        )
        run = watch(Bench(engine=simulated), VLD, (12, 14, 2), policy, Schedule(minutes=1))
        assert [c.kind for c in run.changes] == kinds

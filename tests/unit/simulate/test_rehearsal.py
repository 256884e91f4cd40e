import numpy as np
import pytest

import sojourn as sj
from sojourn.act.node_scaling import NodeBounds
from sojourn.act.policy import policy
from sojourn.act.policy.static import Static
from sojourn.decide.objective import Objective
from sojourn.decide.plan import Plan
from sojourn.errors import BadInput, BadWorkload
from sojourn.simulate.rehearsal import Stage, rehearse
from sojourn.simulate.workload import Rates

ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.1),),
)
TARGET = sj.Target("p95", 0.5)
OBJECTIVE = Objective(target=TARGET)


def stage(*steps, **fields):
    return Stage(topology=ONE, rates=Rates.steps(*steps), objective=OBJECTIVE, **fields)


def test_enough_processors_keep_the_target():
    done = rehearse(stage((0, 50), (600, 50)), Static(), start=Plan.here({"a": 20}))
    assert done.score.kept == 1
    assert done.score.processor_hours == pytest.approx(20 * 600 / 3600)
    assert (done.score.changes, done.score.unfinished) == (0, 0)
    assert len(done.episodes) == 200
    assert len(done.slices_s) == 10


def test_roots_count_where_they_were_born():
    """Those that waited in a backlog are late, though they are done when all is well again."""
    done = rehearse(
        stage((0, 20), (120, 100), (240, 20), (900, 20)), Static(), start=Plan.here({"a": 4})
    )
    late = done.slices_s > TARGET.seconds
    assert not late[:2].any()
    assert late[2:4].all()
    assert not late[-2:].any()
    assert done.score.worst_s == pytest.approx(np.nanmax(done.slices_s))


def test_what_too_few_processors_reach_is_noted():
    steps = (0, 20), (300, 100), (1200, 100)
    enough = stage(*steps).plan(100).processors
    assert stage(*steps, most=enough).notes == ()
    few = stage(*steps, most=enough - 2).notes
    assert f"{enough - 2} processors carry 8" in few[1]
    assert few[1].endswith("per s, so the target can be kept in about 25% of the slices")
    assert len(stage(*steps, most=1).notes) == 2


def test_what_never_completes_is_said():
    done = rehearse(stage((0, 100), (300, 100)), Static(), start=Plan.here({"a": 1}))
    assert done.score.kept == 0
    assert done.score.unfinished > 10_000


def test_a_policy_starts_with_what_the_first_load_needs():
    done = rehearse(stage((0, 50), (300, 50)), policy("drs", target=TARGET))
    assert done.episodes[0].decision.before == stage((0, 50), (300, 50)).plan(50)


def test_nodes_follow_a_load_that_steps_up_and_down_and_say_why():
    """They come when processors need them, are used as soon as they are there, and go again."""
    bounds = NodeBounds(most=3, processors=5, calm_s=60.0)
    done = rehearse(
        stage((0, 20), (300, 90), (900, 20), (1800, 20), bounds=bounds, node_adding_s=45.0),
        policy("drs", target=TARGET),
    )
    decided = [e.decision for e in done.episodes if e.decision.kind != "hold"]
    reasons = " | ".join(decision.reason for decision in decided)
    (asked,) = [each for each in decided if "requests" in each.reason]
    joined = [each for each in decided if " joined" in each.reason]
    back = [each for each in decided if "releases" in each.reason]
    assert "requests 3 nodes, the maximum: " in asked.reason
    assert [each.at_s - asked.at_s for each in joined] == [pytest.approx(45.0)]
    assert "node-1 joined; node-2 joined; processors move to node-0" in joined[0].reason
    on = {node for on in joined[0].after.placement.values() for node in on}
    assert on == {"node-0", "node-1", "node-2"}
    assert [each.after.nodes.given_back for each in back] == [("node-2",), ("node-1",)]
    assert all("not needed for" in each.reason for each in back)
    assert reasons.count("has left") == 2
    for decision in decided:
        used = {node for on in decision.after.placement.values() for node in on}
        assert not used.intersection(
            decision.after.nodes.given_back if decision.after.nodes else ()
        )
    # one all the time, and two more for less than from the step up to well after that down
    assert 1800 < 3600 * done.score.node_hours < 1800 + 2 * 1400
    assert done.score.processor_hours < 3600 * 15


def test_a_loop_that_only_recommends_asks_for_no_node():
    bounds = NodeBounds(most=3, processors=5)
    done = rehearse(
        stage((0, 20), (300, 90), (900, 90), bounds=bounds),
        policy("drs", target=TARGET),
        active=False,
    )
    advised = [e.decision for e in done.episodes if e.done == "up advised"]
    assert "requests 3 nodes" in advised[-1].reason
    assert done.score.node_hours == pytest.approx(900 / 3600)


def test_the_same_seed_is_the_same_run():
    scores = [
        rehearse(stage((0, 50), (200, 90), (400, 90)), policy("drs", target=TARGET), seed=seed)
        for seed in (3, 3, 4)
    ]
    assert scores[0].score == scores[1].score
    assert (scores[0].slices_s == scores[1].slices_s).all()
    assert (scores[0].slices_s != scores[2].slices_s).any()


def test_every_turn_and_every_root_can_be_watched():
    turns, roots = [], []
    done = rehearse(
        stage((0, 50), (100, 50)),
        Static(),
        turn=turns.append,
        roots=lambda some: roots.append(len(some)),
    )
    assert turns == list(done.episodes)
    assert sum(roots) == pytest.approx(5000, rel=0.1)


def test_a_load_with_pauses_has_slices_without_roots():
    done = rehearse(
        stage((0, 50), (60, 0), (180, 50), (240, 50)), Static(), start=Plan.here({"a": 9})
    )
    assert list(np.isnan(done.slices_s)) == [False, True, True, False]
    assert done.score.kept == 1


def test_slices_with_few_roots_are_joined():
    """Without any waiting 0.7 % are late: 40 roots are enough, and a slice has 30."""
    done = rehearse(stage((0, 0.5), (1200, 0.5)), Static(), start=Plan.here({"a": 9}))
    assert len(done.slices_s) == 20
    assert done.score.slices == len(done.slices) <= 10
    assert all(each.born >= 40 for each in done.slices)


@pytest.mark.parametrize("processors", [5, 6, 9])
def test_the_loop_judges_the_slices_as_the_score_does(processors):
    done = rehearse(stage((0, 50), (1200, 50)), Static(), start=Plan.here({"a": processors}))
    judged = done.budget.judged
    assert judged >= done.score.slices - 2  # the last ones end with the load
    kept = [OBJECTIVE.keeps(each) for each in done.slices[:judged]]
    assert done.budget.missed == kept.count(False)


def test_what_cannot_be_staged_is_refused():
    with pytest.raises(BadWorkload, match="but the first look is after"):
        stage((0, 50), (2, 50))
    with pytest.raises(BadWorkload, match="every_s"):
        stage((0, 50), (50, 50), every_s=0)
    with pytest.raises(BadInput, match="hpa"):
        policy("hpa", target=TARGET)

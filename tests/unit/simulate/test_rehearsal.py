import numpy as np
import pytest

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.errors import BadWorkload, UnknownName
from sojourn.simulate.rehearsal import Stage, rehearse
from sojourn.simulate.workload import Rates

ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.1),),
)
TARGET = sj.Target("p95", 0.5)


def stage(*steps, **fields):
    return Stage(topology=ONE, rates=Rates.steps(*steps), target=TARGET, **fields)


def test_enough_processors_are_never_outside():
    done = rehearse(stage((0, 50), (600, 50)), Static(), start=Plan.here({"a": 20}))
    assert done.score.outside == 0
    assert done.score.processor_hours == pytest.approx(20 * 600 / 3600)
    assert (done.score.changes, done.score.unfinished) == (0, 0)
    assert len(done.episodes) == 60
    assert len(done.windows_s) == 10


def test_roots_count_where_they_were_born():
    """Those that waited in a backlog are late, though they are done when all is well again."""
    done = rehearse(
        stage((0, 20), (120, 100), (240, 20), (900, 20)), Static(), start=Plan.here({"a": 4})
    )
    late = done.windows_s > TARGET.seconds
    assert not late[:2].any()
    assert late[2:4].all()
    assert not late[-2:].any()
    assert done.score.worst_s == pytest.approx(np.nanmax(done.windows_s))


def test_what_never_completes_is_said():
    done = rehearse(stage((0, 100), (300, 100)), Static(), start=Plan.here({"a": 1}))
    assert done.score.outside == 1
    assert done.score.unfinished > 10_000


def test_a_policy_starts_with_what_the_first_load_needs():
    done = rehearse(stage((0, 50), (300, 50)), policy("drs", target=TARGET))
    assert done.episodes[0].decision.before == stage((0, 50), (300, 50)).plan(50)


def test_the_same_seed_is_the_same_run():
    scores = [
        rehearse(stage((0, 50), (200, 90), (400, 90)), policy("drs", target=TARGET), seed=seed)
        for seed in (3, 3, 4)
    ]
    assert scores[0].score == scores[1].score
    assert (scores[0].windows_s == scores[1].windows_s).all()
    assert (scores[0].windows_s != scores[2].windows_s).any()


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


def test_a_load_with_pauses_has_windows_without_roots():
    done = rehearse(
        stage((0, 50), (60, 0), (180, 50), (240, 50)), Static(), start=Plan.here({"a": 9})
    )
    assert list(np.isnan(done.windows_s)) == [False, True, True, False]
    assert done.score.outside == 0


def test_what_cannot_be_staged_is_refused():
    with pytest.raises(BadWorkload, match="but the first look is after"):
        stage((0, 50), (5, 50))
    with pytest.raises(BadWorkload, match="window_s"):
        stage((0, 50), (50, 50), window_s=0)
    with pytest.raises(UnknownName, match="hpa"):
        policy("hpa", target=TARGET)

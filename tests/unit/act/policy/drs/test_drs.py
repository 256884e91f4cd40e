"""What people ask of an autoscaler, each by its name."""

from dataclasses import replace

import pytest

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.drs.caution import Caution, QuietHours
from sojourn.act.policy.drs.load_estimate import situation
from sojourn.decide.assign import assign
from sojourn.decide.minimise import minimise
from sojourn.decide.solution import NodeSize
from sojourn.decide.target import Target
from sojourn.errors import BadTarget
from sojourn.measure.sketch import Sketch
from sojourn.measure.smooth import Window
from sojourn.model.network import mean_s
from unit.act.policy.turns import BUSY, Turns, seen

TARGET = Target("mean", 0.13)
EVERY_S, T_RA_S = 10.0, 60.0


def drs(*, target=TARGET, most=None, model="gigk", **fields):
    caution = {"t_ra_s": T_RA_S} | fields.pop("caution", {})
    return Drs(
        goal=Goal(target=target, most=most, model=model), caution=Caution(**caution), **fields
    )


def planned(per_s, *, margin=0.15, target=TARGET):
    return dict(minimise(BUSY.scaled((1 + margin) * per_s / 100), target).allocation)


def running(policy=None, allocation=None, *, every_s=EVERY_S, **fields):
    return Turns(policy or drs(), BUSY, allocation or planned(100), every_s=every_s, **fields)


def test_the_right_number_stays_and_it_is_said_why():
    app = running()
    for decision in app.turns(50, 100):
        assert decision.kind == "hold"
        assert ", within the target of 0.13 s" in decision.reason


def test_up_promptly():
    """A load that doubles is answered at the next look, however short ago the last change."""
    app = running()
    app.turns(6, 100)
    assert app.turn(200).kind == "up"
    assert app.turn(400).kind == "up"
    assert mean_s(BUSY.scaled(4), app.knowledge.allocation) <= TARGET.seconds


def test_an_up_goes_to_what_the_load_and_some_margin_need():
    app = running()
    app.turns(6, 100)
    assert app.turn(200).after.allocation == planned(200)


def test_nobody_loses_processors_when_others_get_more():
    app = running(allocation={**planned(100), "b": 20})
    app.turns(1, 100)
    assert app.turn(200).after.allocation["b"] == 20


def test_down_lazily_and_only_when_confirmed():
    app = running(allocation=planned(200))
    decisions = app.turns(6, 100)
    assert [d.kind for d in decisions] == ["hold"] * 5 + ["down"]
    assert "waiting for confirmation" in decisions[0].reason
    assert mean_s(BUSY.scaled(1.1), decisions[-1].after.allocation) <= TARGET.seconds
    assert decisions[-1].after.processors <= sum(planned(100, margin=0.25).values())


def test_one_observation_that_disagrees_keeps_the_processors():
    app = running(allocation=planned(200))
    app.turns(4, 100)
    app.turn(200)
    assert {d.kind for d in app.turns(5, 100)} == {"hold"}
    assert "down" in {d.kind for d in app.turns(10, 100)}


def test_never_down_while_catching_up():
    app = running(allocation=planned(200))
    for decision in app.turns(20, 100, backlog={"b": 500}):
        assert decision.kind == "hold"
    assert decision.reason == "backlog of 489 at b; not scaling down"
    assert app.turn(100).kind == "down"


@pytest.mark.parametrize("drain_s", [20.0, 100.0])
def test_a_backlog_is_worked_off_within_the_time_that_is_given(drain_s):
    app = running(drs(drain_s=drain_s))
    decision = app.turn(100, backlog={"a": 3000})
    capacity_per_s = {
        n: k / BUSY.operator[n].service_s for n, k in decision.after.allocation.items()
    }
    assert capacity_per_s["a"] - 100 >= 0.95 * 3000 / drain_s
    # what waits at a will reach b, twice
    assert capacity_per_s["b"] - 200 >= 0.95 * 2 * 3000 / drain_s
    assert "backlog of" in decision.reason


def test_a_queue_that_is_long_by_chance_is_no_backlog():
    app = running()
    assert {d.kind for d in app.turns(20, 100, backlog={"a": 5, "b": 4})} == {"hold"}


def test_the_cost_of_changes_is_measured_not_configured():
    """Where changes pause operators for long, those that could wait come seldom."""
    app = running(pause_s=10.0)
    app.turns(2, 100)
    assert app.turn(200).kind == "up"
    assert app.knowledge.pause_s == 10.0
    decisions = app.turns(19, 100)  # 10 s at a twentieth of the time are 200 s
    assert {d.kind for d in decisions} == {"hold"}
    assert "changes pause operators for 10 s and are kept 200 s apart" in decisions[-1].reason
    assert app.turn(100).kind == "down"


def test_a_processor_saved_is_not_worth_a_long_pause():
    app = running(allocation={**planned(100), "a": planned(100)["a"] + 2}, pause_s=9.0)
    app.knowledge = replace(app.knowledge, pauses_s=(9.0,))
    held = app.turns(40, 100)
    assert {d.kind for d in held} == {"hold"}
    assert "the saving is not worth a pause of 9 s" in held[-1].reason


def test_what_must_be_done_is_done_whatever_it_costs():
    app = running(pause_s=60.0)
    app.turns(6, 100)
    assert [app.turn(per_s).kind for per_s in (200, 400, 800)] == ["up"] * 3


def test_a_gain_that_a_pause_eats_up_is_left_alone():
    best = dict(assign(BUSY, 16).allocation)
    wrong = {"a": best["a"] - 2, "b": best["b"] + 2}
    cheap, dear = running(fixed(16), wrong), running(fixed(16), wrong)
    dear.knowledge = replace(dear.knowledge, pauses_s=(9.0,))
    assert "move" in {d.kind for d in cheap.turns(30, 100)}
    held = dear.turns(30, 100)
    assert {d.kind for d in held} == {"hold"}
    assert held[-1].reason.endswith("not worth a pause of 9 s")


def test_hold_on_bad_metrics():
    app = running()
    app.turns(6, 100)
    decision = app.unusable("a: service_s of p1 is nan")
    assert decision.kind == "hold"
    assert decision.reason == "measurements are not usable: a: service_s of p1 is nan"
    assert decision.wish.wanted is None


@pytest.mark.parametrize(("lost", "last"), [(1, "down"), (2, "hold")])
def test_one_lost_observation_of_twelve_still_confirms(lost, last):
    app = running(allocation=planned(200), every_s=5)
    app.turns(10 - lost, 100)
    for _ in range(lost):
        app.unusable("no answer")
    assert [d.kind for d in app.turns(2, 100)] == ["hold", last]


def test_looks_a_second_apart_confirm_after_a_minute():
    app = running(allocation=planned(200), every_s=1)
    assert {d.kind for d in app.turns(59, 100)} == {"hold"}
    app.turn(100)
    assert app.knowledge.allocation != planned(200)


def test_quiet_hours_change_nothing_but_say_what_would_be():
    night = QuietHours(0, 3600)
    app = running(drs(caution={"quiet": (night,)}))
    app.turns(6, 100)
    decision = app.turn(300)
    assert decision.kind == "hold"
    assert "cannot keep up" in decision.reason
    assert decision.reason.endswith("but not in quiet hours (00:00-01:00)")
    awake = running(drs(caution={"quiet": (night,)}))
    awake.knowledge = replace(awake.knowledge, midnight_s=12 * 3600)
    awake.turns(6, 100)
    assert awake.turn(300).kind == "up"


def test_bounds_of_operators_are_kept():
    bound = replace(
        BUSY, operators=(replace(BUSY.operators[0], max_processors=8), BUSY.operators[1])
    )
    app = Turns(drs(), bound, {"a": 7, "b": 6}, every_s=EVERY_S)
    app.turns(2, 100)
    decision = app.turn(400)
    assert decision.after.allocation["a"] == 8
    assert "max_processors is 8" in decision.reason
    assert {d.after.allocation["a"] for d in app.turns(20, 400)} == {8}


def test_all_there_are_are_used_when_they_do_not_suffice():
    app = running(drs(most=20))
    app.turns(2, 100)
    decision = app.turn(600)
    assert decision.after.allocation == {"a": 11, "b": 9}
    assert "20 processors cannot keep up" in decision.reason
    assert app.turn(600).kind == "hold"


def test_too_few_processors_are_not_shuffled_about_by_chance():
    app = running(drs(most=20, smooth=Window(1)))
    app.turns(2, 100)
    app.turn(600)
    decisions = [app.turn(600, service_s={"a": 0.05 * part}) for part in (1.1, 0.9, 1.1)]
    assert {d.kind for d in decisions} == {"hold"}
    assert any(
        "another allocation would not be measurably better" in d.reason for d in decisions
    )


def test_a_target_that_nothing_meets_is_come_near_to_and_said():
    app = running(drs(target=Target("mean", 0.05)), allocation={"a": 6, "b": 5})
    decision = app.turns(2, 100)[-1]
    assert sum(app.knowledge.allocation.values()) < 40
    assert "0.05 s" in decision.reason


def test_no_flapping_on_a_steady_load():
    """The load goes up and down by chance, and nothing goes up and down with it."""
    app = running(drs(target=Target("mean", 0.105)), allocation=planned(100))
    noise = [0, 3, -4, 1, 5, -2, -5, 4, 2, -3] * 30
    changes = [d for d in (app.turn(100 + extra) for extra in noise) if d.kind != "hold"]
    assert len(changes) <= 1


def test_what_was_added_at_a_load_stays_for_ten_t_ra():
    app = running()
    app.turns(6, 100)
    up = app.turn(125)
    assert up.kind == "up"
    later = app.turns(60, 122)
    assert {d.kind for d in later[:-1]} == {"hold"}


def test_where_there_once_were_too_few_is_not_gone_back_to():
    """Long after, when the time in which nothing is undone is over."""
    app = running(drs(caution={"calm": 0.0, "margin": 0.2, "sigmas": 0.0}))
    app.turns(6, 100)
    before = app.turn(125).before.allocation
    after = [d.after.allocation for d in app.turns(60, 105)]
    assert all(k["a"] > before["a"] or k["b"] > before["b"] for k in after)


def test_and_what_came_on_top_of_it_at_another_load_is_given_up():
    """An operator keeps what it got then, not all that it has."""
    app = running()
    app.turns(6, 100)
    up = app.turn(200)
    app.turns(3, 1000)
    unsure = Caution(calm=0.0, sigmas=14.0)  # of 200 and 100, not of 1000 and 100
    offered = {name: erlangs / 2 for name, erlangs in up.wish.offered.items()}
    known, goal = app.knowledge, app.policy.goal
    now = situation(known, known.observations[-1], goal, drain_s=60.0)
    now = replace(now, offered=offered, offered_noise=up.wish.noise)
    undone = unsure.undone(now, up.before.allocation)
    assert undone == up.after.allocation
    assert sum(app.knowledge.allocation.values()) > 4 * sum(undone.values())


def test_every_decision_is_explained_with_what_it_rests_on():
    app = running()
    for per_s in (100, 100, 250, 250, 250, 30, 30, 30):
        decision = app.turn(per_s)
        assert decision.reason
        assert decision.wish.wanted is not None
        assert decision.wish.offered["a"] == pytest.approx(
            decision.wish.offered["b"] * 0.05 / (2 * 0.02), rel=0.01
        )
        assert 0 < decision.wish.noise["a"] < 0.3


def test_what_is_expected_is_remembered_with_the_decision():
    app = running()
    expected = app.turn(100).expected
    assert expected.statistic == "mean"
    assert expected.seconds == pytest.approx(mean_s(BUSY, planned(100)), rel=0.01)
    assert set(expected.sojourns_s) == {"a", "b"}
    assert app.turn(100, backlog={"a": 5000}).expected is None


def test_nothing_arriving_leaves_what_keeps_operators_alive():
    app = running()
    app.turns(3, 100)
    app.turns(40, 0)
    assert app.knowledge.allocation == {"a": 1, "b": 1}
    assert app.turn(100).kind == "up"


# -- the best use of a given number (DRS's optimisation 6) ------------------------------------


def fixed(most, **fields):
    return drs(target=None, most=most, **fields)


def test_a_given_number_is_used_as_well_as_can_be():
    best = dict(assign(BUSY, 16).allocation)
    app = running(fixed(16), allocation={"a": best["a"] - 2, "b": best["b"] + 2})
    assert [d.kind for d in app.turns(6, 100)] == ["hold"] * 5 + ["move"]
    assert app.knowledge.allocation == best
    assert app.turn(100).reason.endswith("the best for this number of processors")


def test_what_is_little_better_is_not_worth_moving():
    best = dict(assign(BUSY, 40).allocation)
    app = running(fixed(40), allocation={"a": best["a"] - 1, "b": best["b"] + 1})
    decision = app.turns(10, 100)[-1]
    assert decision.kind == "hold"
    assert decision.reason.endswith("not worth a change")


def test_the_number_may_be_changed_while_it_runs():
    app = running(fixed(16), allocation=dict(assign(BUSY, 16).allocation))
    app.turns(10, 100)
    app.policy = fixed(20)
    decision = app.turn(100)
    assert (decision.kind, decision.after.processors) == ("up", 20)
    app.policy = fixed(14)
    assert [d.kind for d in app.turns(6, 100)] == ["hold"] * 5 + ["down"]
    assert sum(app.knowledge.allocation.values()) == 14


def test_the_target_may_be_changed_while_it_runs():
    app = running()
    app.turns(10, 100)
    app.policy = drs(target=Target("mean", 0.093))
    assert app.turn(100).kind == "up"
    loose = Target("p95", 10.0)
    app.policy = drs(target=loose)
    app.turns(20, 100)
    assert app.knowledge.allocation == planned(100, target=loose)


# -- as published (DRS-17 IV-B) ---------------------------------------------------------------


def published(**fields):
    return drs(
        trigger="measured",
        prompt=False,
        smooth=Window(1),
        caution={
            "t_ra_s": 30.0,
            "margin": 0.0,
            "sigmas": 0.0,
            "confirm_s": 0.0,
            "calm": 0.0,
            "disturbed": 1.0,
        },
        **fields,
    )


def measured(app, per_s, took_s):
    """Let one turn pass in which roots took *took_s*."""
    app.at_s += app.every_s
    observation = seen(
        app.knowledge.topology,
        app.knowledge.allocation,
        at_s=app.at_s,
        lasted_s=app.every_s,
        per_s=per_s,
    )
    times = Sketch.of([took_s] * 500)
    return app._on(replace(observation, sums=times, completions=times))  # noqa: SLF001


def test_as_published_shortage_is_what_is_measured():
    app = running(published(), allocation={"a": 6, "b": 5})
    assert [measured(app, 100, took_s).kind for took_s in (0.12, 0.2, 0.2)] == [
        "hold",
        "hold",  # T_ra is not over
        "up",
    ]


def test_as_published_overprovision_is_below_t_min():
    app = running(published(low_s=0.1), allocation=dict(assign(BUSY, 24).allocation))
    kinds = [measured(app, 100, took_s).kind for took_s in (0.11, 0.11, 0.11, 0.095)]
    assert kinds == ["hold", "hold", "hold", "down"]
    assert app.knowledge.allocation == planned(100, margin=0.0)


def test_as_published_misallocation_is_what_is_left():
    best = dict(assign(BUSY, 16).allocation)
    app = running(published(low_s=0.05), {"a": best["a"] - 2, "b": best["b"] + 2})
    assert [measured(app, 100, 0.12).kind for _ in range(3)] == ["hold", "hold", "move"]
    assert app.knowledge.allocation == best


def test_whole_nodes_come_and_go_as_wholes():
    machines = NodeSize(slots=5, reserved=3)
    policy = replace(drs(), goal=Goal(target=TARGET, nodes=machines))
    app = Turns(policy, BUSY, {"a": 7, "b": 5}, every_s=EVERY_S)
    app.turns(3, 100)
    after = app.turn(300).after.allocation
    assert (sum(after.values()) + 3) % 5 == 0


# -- what is learned, and what is foreseen -----------------------------------------------------


def test_waits_that_are_longer_than_expected_are_learned():
    """The model knows nothing of what else slows a record down; what was measured does."""
    app = running()
    floor_s = 0.05 + 2 * 0.02
    wait_s = mean_s(BUSY, app.knowledge.allocation) - floor_s
    decisions = [measured(app, 100, floor_s + 4 * wait_s) for _ in range(10)]
    up = next(d for d in decisions if d.kind == "up")
    assert "times those of the model" in up.reason
    assert mean_s(BUSY, up.after.allocation) - floor_s < (TARGET.seconds - floor_s) / 3


def test_a_forecast_is_planned_for_before_it_comes_true():
    patient, foreseeing = running(), running(drs(forecast=True))
    rising = [100 + 5 * turn for turn in range(30)]
    for per_s in rising:
        patient.turn(per_s)
        foreseeing.turn(per_s)
    assert sum(foreseeing.knowledge.allocation.values()) >= sum(
        patient.knowledge.allocation.values()
    )
    first_up = [
        next(e.decision.at_s for e in app.knowledge.episodes if e.decision.kind == "up")
        for app in (patient, foreseeing)
    ]
    assert first_up[1] <= first_up[0]


@pytest.mark.parametrize(
    "fields", [{"goal": Goal()}, {"goal": Goal(target=TARGET), "drain_s": 0.0}]
)
def test_what_cannot_be_aimed_at_is_refused(fields):
    with pytest.raises(BadTarget):
        Drs(**fields)


# -- the end of a batch ------------------------------------------------------------------------


def test_nothing_is_added_for_what_waited_while_a_batch_ended():
    app = running(drs(drain_s=20.0))
    app.turns(6, 100)
    ended = app.turn(100, backlog={"a": 3000}, commits=1)
    assert ended.kind == "hold"
    assert ended.reason == (
        "a backlog of 2990 cannot be cleared in 20 s, but a batch has just ended and records "
        "waited for it; scaling up only if it persists"
    )
    assert app.turn(100, backlog={"a": 3000}).kind == "up"


def test_a_load_that_plainly_grew_is_not_put_down_to_the_end_of_a_batch():
    app = running()
    app.turns(6, 100)
    assert app.turn(300, commits=1).kind == "up"


def test_where_batches_end_in_every_look_their_cost_is_a_part_of_the_latency():
    app = running(drs(drain_s=20.0))
    app.turns(6, 100, commits=1)
    assert app.turn(100, backlog={"a": 3000}, commits=1).kind == "up"


def test_what_was_measured_while_a_batch_ended_is_nothing_that_was_expected():
    app = running()
    app.turns(3, 100)
    assert len(app.knowledge.outcomes()) == 2
    app.turn(100, commits=1)
    assert len(app.knowledge.outcomes()) == 2
    app.turn(100)
    assert len(app.knowledge.outcomes()) == 3


# -- processors that do not start --------------------------------------------------------------


def test_what_cannot_be_started_stays_wanted_and_is_said():
    app = running(allocation={"a": 12, "b": 7})
    told = {"runs": {"a": 7}, "missing": {"a": "out of memory"}}
    first = app.turns(2, 100, **told)
    assert not any("processors of a are running" in d.reason for d in first)
    later = app.turns(8, 100, **told)
    assert {d.after.allocation["a"] for d in later} == {12}
    assert later[-1].reason.endswith(
        "; only 7 of 12 processors of a are running (out of memory)"
    )
    # what is expected, is expected of those that run
    assert later[-1].expected.seconds == pytest.approx(mean_s(BUSY, {"a": 7, "b": 7}), rel=0.1)
    assert "processors of a are running" not in app.turn(100).reason


def test_others_make_up_for_what_cannot_be_started():
    whole, short = {"a": 9, "b": 5}, {"a": 7, "b": 5}
    assert mean_s(BUSY, whole) < 0.13 < mean_s(BUSY, short)
    app = running(allocation=whole)
    decisions = app.turns(4, 100, runs={"a": 7})
    assert decisions[1].after.allocation == whole
    assert decisions[-1].after.allocation["a"] == 9
    assert decisions[-1].after.allocation["b"] > 5


def test_an_overload_for_want_of_processors_that_start_names_no_bound_that_nobody_set():
    app = running(allocation={"a": 8, "b": 6})
    decision = app.turns(4, 100, runs={"a": 3})[-1]
    assert decision.reason.startswith("a cannot keep up")
    assert decision.reason.endswith("; only 3 of 8 processors of a are running")
    assert "max_processors" not in decision.reason


# -- what is said ------------------------------------------------------------------------------


def test_reasons_speak_of_the_target_that_was_asked_for():
    app = running()
    floor_s = 0.05 + 2 * 0.02
    wait_s = mean_s(BUSY, app.knowledge.allocation) - floor_s
    decisions = [measured(app, 100, floor_s + 4 * wait_s) for _ in range(10)]
    up = next(d for d in decisions if d.kind == "up")
    assert ", above the target of 0.13 s (waits are " in up.reason


def test_the_number_that_would_do_is_the_number_that_is_kept():
    app = running(allocation=planned(400))
    decisions = [*app.turns(3, 140), *app.turns(40, 100)]
    down = next(d for d in decisions if d.kind == "down")
    kept, before = down.after.processors, down.before.processors
    text = ":".join(str(k) for k in down.after.allocation.values())
    assert down.reason == f"{kept} of {before} processors are enough: {text}"


def test_a_target_that_the_most_do_not_keep_is_named_as_it_was_asked_for():
    app = running(drs(target=Target("mean", 0.1), most=14), allocation={"a": 7, "b": 6})
    app.turns(3, 100)
    decision = app.turn(100)
    assert "14 processors do not reach mean ≤ 0.1 s; " in decision.reason

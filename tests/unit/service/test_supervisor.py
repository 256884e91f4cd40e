"""A running application that several threads command, on the simulator."""

import threading
from dataclasses import replace
from itertools import count, islice

import pytest

import sojourn as sj
from live_engine import LiveSimulator
from sojourn.act.node_scaling import NodeBounds
from sojourn.act.policy.static import Static
from sojourn.decide.plan import NodePlan
from sojourn.errors import (
    ApplicationStopped,
    BadAllocation,
    BadInput,
    BadTarget,
    EngineError,
)
from sojourn.loop import Loop
from sojourn.simulate.nodes import NodeSettings
from sojourn.simulate.real_time import InstantClock, RealTimeSimulator
from sojourn.simulate.workload import SimulatorSettings
from supervised import ENOUGH, Broken, Jump, begun, turned


def looks(running, number):
    """Return turns alone, without what was told by hand between them."""
    passing = (episode for episode in running.turns() if episode.looked)
    return list(islice(passing, number))


def known(running):
    """Return the turns that the loop remembers, with the target that they had."""
    target = running.orders.target
    return tuple(replace(episode, target=target) for episode in running.knowledge.episodes)


def test_turns_are_those_of_the_loop():
    running = begun(Jump())
    first, second = turned(running, 2)
    assert (first.running.allocation["a"], second.running.allocation["a"]) == (5, 6)
    assert known(running) == (first, second)
    assert running.changes == 2


def test_it_ends_when_it_is_time():
    assert len(list(begun(Static()).turns(until_s=5.0))) == 5


def test_it_ends_after_the_turn_in_which_it_is_asked_to():
    running = begun(Static())
    for _ in running.turns():
        running.end()
    assert len(running.knowledge.episodes) == 1
    assert not list(running.turns())


# -- by hand -----------------------------------------------------------------------------------


def test_a_change_by_hand_is_made_at_once_and_stays():
    """The loop would undo it at its next turn, so it is paused."""
    running = begun(Jump())
    turned(running, 1)
    said = running.scale({"b": 4})
    assert said == (
        "b 2 -> 4; the loop is paused: `sojourn resume` starts it again"
    )  # what is printed
    assert running.engine.plan.allocation == {"a": 5, "b": 4}
    assert running.knowledge.allocation == {"a": 5, "b": 4}
    told, after = turned(running, 2)
    assert told.decision.reason == "set by hand with `sojourn scale`"
    assert told.decision.before.changes(told.decision.after)["b"] == (2, 4)
    assert told.cost.changed == {"b": (2, 4)}
    assert after.decision.before.allocation == {"a": 5, "b": 4}
    assert (after.cost, running.engine.plan.allocation) == (None, {"a": 5, "b": 4})


def test_what_was_done_by_hand_does_not_confuse_what_is_known():
    """Policies look back on observations, and that was none."""
    running = begun(Static())
    running.scale({"b": 4})
    turned(running, 3)
    assert all(e.observation.lasted_s > 0 for e in running.knowledge.episodes)
    assert running.knowledge.changed_at_s == 0.0
    running.scale({"b": 3})
    assert running.knowledge.changed_at_s == running.engine.now_s == 2.0


def test_resumed_it_goes_on_from_there():
    running = begun(Jump())
    running.scale({"a": 9})
    assert running.mode.name == "paused"
    assert running.resume() == "the loop is active: mean ≤ 0.2 s, None"
    _, told, episode = turned(running, 3)
    assert told.decision.reason == "resumed with `sojourn resume`: mean ≤ 0.2 s, None"
    assert episode.decision.before.changes(episode.running)["a"] == (9, 10)


def test_the_allocation_is_saved_at_each_change_by_hand_and_at_each_turn():
    """A turn saves it even if nothing changed: the disk may have been full before."""
    saved = []
    running = begun(Jump(), save=saved.append)
    turned(running, 1)
    running.scale({"b": 4})
    assert saved == [ENOUGH | {"a": 5}, {"a": 5, "b": 4}]
    turned(running, 2)
    assert saved[2:] == [{"a": 5, "b": 4}]


def test_the_same_processors_again_are_no_change():
    running = begun(Jump())
    assert running.scale({"a": 4}).startswith("a=4 already; the loop is paused")
    assert (running.changes, running.mode.name) == (0, "paused")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "no operator is named"),
        ({"c": 1}, "there is no operator 'c'; operators are a, b"),
        ({"a": 0}, "a: 0 is not a valid number of processors"),
        ({"a": "3"}, "a: '3' is not a valid number of processors"),
        ({"a": True}, "a: True is not a valid number of processors"),
        ({"a": 1}, "a: 1 processors is below its min_processors, 2"),
        ({"b": 7}, "b: 7 processors is above its max_processors, 6"),
        (
            {"a": 7, "b": 6},
            "13 processors in all is above the maximum, 12; .* --max-processors 13",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(asked, said):
    running = begun(Jump(), most=12)
    with pytest.raises(BadAllocation, match=said):
        running.scale(asked)
    assert (running.engine.plan.allocation, running.mode.name) == (ENOUGH, "active")


def test_fewer_are_allowed_even_where_there_are_too_many():
    running = begun(Static(), most=6)
    running.set_goal(None, 4)
    assert "a 4 -> 3" in running.scale({"a": 3})


def test_what_the_engine_refuses_leaves_the_loop_deciding():
    running = begun(Jump())

    def refuse(_allocation):
        raise EngineError("no processors to be had")

    running.engine.apply = refuse
    with pytest.raises(EngineError, match="no processors"):
        running.scale({"a": 5})
    assert (running.mode.name, running.knowledge.allocation) == ("active", ENOUGH)


def test_a_decision_under_way_does_not_undo_what_is_set_by_hand():
    """Somebody scales while the loop decides on what it saw before."""
    deciding, scaled = threading.Event(), threading.Event()

    class Slow(Jump):
        def __call__(self, knowledge, /):
            deciding.set()
            scaled.wait(0.2)  # which it must not see happen
            return super().__call__(knowledge)

    running = begun(Slow())

    def by_hand():
        deciding.wait()
        running.scale({"a": 9})
        scaled.set()

    thread = threading.Thread(target=by_hand, daemon=True)
    thread.start()
    turned(running, 1)
    thread.join()
    assert running.engine.plan.allocation["a"] == 9
    turned(running, 3)
    assert running.engine.plan.allocation["a"] == running.knowledge.allocation["a"] == 9


def test_processors_are_changed_while_the_loop_looks():
    """It may wait for a long time, and somebody wants them now."""
    looking, scaled = threading.Event(), threading.Event()

    def wait(_now_s):
        looking.set()
        scaled.wait()

    running = begun(Static(), engine=LiveSimulator(raises=wait))
    thread = threading.Thread(target=turned, args=(running, 1), daemon=True)
    thread.start()
    looking.wait()
    running.scale({"a": 6})
    assert running.engine.plan.allocation["a"] == 6
    scaled.set()
    thread.join()
    assert running.knowledge.allocation["a"] == 6


def test_paused_it_recommends_only():
    running = begun(Jump())
    assert running.pause().startswith("the loop is paused: it measures and recommends")
    episode = looks(running, 1)[0]
    assert (episode.decision.kind, episode.cost) == ("up", None)
    running.resume()
    assert looks(running, 1)[0].cost is not None


def test_started_passive_it_recommends_until_it_is_resumed():
    running = begun(Jump(), active=False)
    assert (running.mode.name, turned(running, 1)[0].cost) == ("passive", None)
    running.resume()
    assert looks(running, 1)[0].running.allocation["a"] == 5


def test_another_target_is_gone_after_from_the_next_turn_on():
    running = begun()
    turned(running, 20)
    assert running.engine.plan.allocation == ENOUGH
    assert running.set_goal(sj.Target("mean", 0.0751), 12) == ("now mean ≤ 0.0751 s, 12")
    turned(running, 1)
    assert sum(running.engine.plan.allocation.values()) > 6
    assert running.orders.most == 12


def test_orders_are_noticed_with_who_gave_them_and_turns_keep_their_target():
    """So that a history tells them, and judges each turn by what was asked for then."""
    running = begun()
    old, new = running.orders.target, sj.Target("p95", 1.0)
    running.pause("anna")
    before = turned(running, 2)
    running.set_goal(new, 12, "ben")
    running.resume()
    after = turned(running, 3)
    assert [episode.looked for episode in (*before, *after)] == [
        False,
        True,
        False,
        False,
        True,
    ]
    assert [episode.decision.reason for episode in (before[0], *after[:2])] == [
        "paused with `sojourn pause` by anna: it only recommends",
        "set with `sojourn set` by ben: p95 ≤ 1 s, 12",
        "resumed with `sojourn resume`: p95 ≤ 1 s, 12",
    ]
    assert [episode.target for episode in (*before, *after)] == [old, old, new, new, new]
    assert {episode.decision.kind for episode in (before[0], *after[:2])} == {"hold"}


def test_what_is_told_after_the_last_turn_is_not_lost():
    running = begun()
    turned(running, 1)
    running.pause()
    running.end()
    assert not list(running.turns())
    assert [e.decision.reason for e in running.untold()] == [
        "paused with `sojourn pause`: it only recommends"
    ]
    assert not list(running.untold())


def test_what_is_not_set_stays():
    running = begun(most=20)
    running.set_goal(sj.Target("p95", 1.0), None)
    assert (running.orders.target, running.orders.most) == (sj.Target("p95", 1.0), 20)
    assert running.set_goal(None, 9) == "now p95 ≤ 1 s, 9"
    running.pause()
    assert "9; the loop is paused" in running.set_goal(sj.Target("p95", 2.0), None)


def test_another_placement_is_set_by_its_name():
    running = begun(most=20)
    target = running.orders.target
    assert running.set_goal(placement="one_node") == f"now {target}, 20, placement one_node"
    assert (running.orders.placement, running.orders.target) == ("one_node", target)
    with pytest.raises(BadInput, match="unknown placer 'moon'"):
        running.set_goal(placement="moon")


def test_a_goal_that_cannot_be_is_refused_and_the_old_one_stays():
    running = begun(most=20)
    with pytest.raises(
        BadTarget, match="the maximum is 2 processors, and the operators need 3"
    ):
        running.set_goal(None, 2)
    with pytest.raises(BadInput, match="nothing to set"):
        running.set_goal(None, None)
    assert running.orders.most == 20
    with pytest.raises(BadTarget, match="the maximum is 1 processors"):
        begun(most=1)


# -- failures ----------------------------------------------------------------------------------


def test_a_loop_that_fails_is_started_again_and_takes_over():
    """What runs, and what is known, are not its own."""
    running = begun(Broken(times=2))
    episodes = turned(running, 3)
    assert [e.failure for e in episodes] == ["ZeroDivisionError: by zero"] * 2 + [""]
    assert episodes[0].decision.reason == "the loop failed and was restarted"
    assert running.mode.name == "active"
    assert known(running) == (episodes[2],)
    assert running.knowledge.allocation == ENOUGH


def test_what_was_applied_before_it_failed_is_known_to_the_next(monkeypatch):
    class Forgets(Loop):
        def decide(self, observation):
            super().decide(observation)
            raise RuntimeError("after it has acted")

    monkeypatch.setattr("sojourn.service.supervisor.Loop", Forgets)
    saved = []
    running = begun(Jump(), save=saved.append)
    turned(running, 1)
    assert saved == [running.engine.plan.allocation]
    assert running.engine.plan.allocation == running.knowledge.allocation == {"a": 5, "b": 2}


def test_a_loop_that_fails_again_and_again_decides_no_more_but_all_goes_on():
    running = begun(Broken())
    episodes = turned(running, 15)
    assert [bool(e.failure) for e in episodes] == [True] * 10 + [False] * 5
    said = "the loop failed 10 times and has stopped; `sojourn resume` starts it again"
    assert episodes[9].decision.reason == said
    assert episodes[-1].decision.reason == f"{said}: ZeroDivisionError: by zero"
    assert episodes[-1].observation.usable
    assert running.mode.name == "failed"
    assert "has stopped already" in running.pause()
    assert "a 4 -> 5" in running.scale({"a": 5})
    assert running.mode.name == "failed"


def test_resumed_a_failed_loop_tries_again():
    running = begun(Broken(times=10))
    turned(running, 12)
    assert running.mode.name == "failed"
    running.resume()
    assert looks(running, 1)[0].decision.reason == "static: the allocation never changes"


def test_failures_far_apart_are_no_reason_to_give_up(monkeypatch):
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr("sojourn.service.supervisor.time.monotonic", lambda: next(clock))
    running = begun(Broken())
    assert all(e.failure for e in turned(running, 15))
    assert running.mode.name == "active"


def test_not_even_looking_may_work_and_all_goes_on():
    looks = count()
    engine = LiveSimulator(
        raises=lambda _now_s: KeyError("a bug") if next(looks) < 13 else None
    )
    running = begun(Static(), engine=engine, every_s=0.01)
    episodes = turned(running, 11)
    assert [bool(e.failure) for e in episodes] == [True] * 10 + [False]
    assert (next(looks), episodes[-1].observation.usable) == (14, True)


def test_an_application_that_stopped_is_said_with_its_reason():
    running = begun(Static(), engine=LiveSimulator(stops_at_s=2.0))
    with pytest.raises(ApplicationStopped, match="a record failed: ValueError: seven"):
        turned(running, 5)


def test_a_failure_that_only_its_health_tells_ends_it_too():
    running = begun(Static())
    turned(running, 1)
    running.engine.failure = "split: it cannot be imported"
    with pytest.raises(ApplicationStopped, match="cannot be imported"):
        turned(running, 1)


def test_while_it_is_drained_nothing_can_be_changed():
    running = begun(Jump())
    progress = []
    running.drain(progress.append)
    assert progress[-1] == "drained"
    for change in (running.pause, running.resume, lambda: running.scale({"a": 5})):
        with pytest.raises(
            EngineError, match="nothing can be changed: the application is stopping"
        ):
            change()
    with pytest.raises(EngineError, match="nothing can be changed"):
        running.set_goal(None, 9)


# -- nodes -------------------------------------------------------------------------------------


def on_nodes(decides=None, **begins):
    """Return an application whose nodes come two seconds after they are asked for."""
    nodes = SimulatorSettings(nodes=NodeSettings(first=2, adding_s=2.0))
    engine = RealTimeSimulator(nodes, clock=InstantClock())
    bounds = NodeBounds(least=2, most=4, processors=3, calm_s=1.0)
    return begun(decides or Static(), engine=engine, nodes=bounds, **begins)


def nodes_used(running):
    return {node for on in running.engine.plan.placement.values() for node in on}


def test_processors_are_placed_on_nodes_when_it_begins():
    """A start leaves open where they run: its nodes are known only then."""
    running = on_nodes()
    (placed,) = running.untold()
    assert placed.decision.reason == "processors run on node-0, node-1"
    assert nodes_used(running) == {"node-0", "node-1"}
    assert not running.changes


def test_an_order_by_hand_gets_its_nodes_and_a_node_that_comes_is_used_while_paused():
    running = on_nodes()
    turned(running, 1)
    assert running.scale({"a": 7}, "anna").startswith("a 4 -> 7; the loop is paused")
    assert running.engine.plan.nodes == NodePlan(number=3)
    passed = turned(running, 6)
    reasons = [episode.decision.reason for episode in passed]
    assert reasons[0] == (
        "set by hand with `sojourn scale` by anna; requests 3 nodes: 9 processors, 3 on each"
    )
    (joined,) = [episode for episode in passed if " joined" in episode.decision.reason]
    assert (joined.done, joined.target) == ("move", running.orders.target)
    assert nodes_used(running) == {"node-0", "node-1", "node-2"}
    assert running.mode.name == "paused"


def test_what_nodes_cost_is_known_to_the_loop():
    running = on_nodes()
    turned(running, 1)
    running.scale({"a": 7})
    turned(running, 6)
    assert running.knowledge.node_costs.adding_s == pytest.approx(2.0, abs=0.2)


def test_a_placer_that_fails_when_nodes_change_ends_nothing(monkeypatch):
    running = on_nodes()
    list(running.untold())

    def fail(_self):
        raise ZeroDivisionError("by zero")

    with monkeypatch.context() as broken:
        broken.setattr(Loop, "follow_nodes", fail)
        running.scale({"a": 7})
        passed = turned(running, 6)
    failed = [episode for episode in passed if episode.failure]
    assert [episode.failure for episode in failed] == ["ZeroDivisionError: by zero"]
    assert nodes_used(running) == {"node-0", "node-1", "node-2"}  # at the next turn

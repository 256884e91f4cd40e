from dataclasses import replace
from math import nan

import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.static import Static
from sojourn.decide.plan import Node, Plan
from sojourn.engine import Cost
from sojourn.errors import ApplicationStopped, BadInput, BrokerAway, DiskFull, EngineError
from sojourn.knowledge import Wish
from sojourn.loop import PASSIVE, Loop
from sojourn.simulate.simulator import Simulator

ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.1),),
)


class Jump:
    """A policy that wants *k* processors."""

    def __init__(self, k):
        self.k = k

    def __call__(self, _knowledge, /):
        return Wish(allocation={"a": self.k}, reason="a test wants it")


class Stubborn:
    """An engine that refuses, or does not answer, as often as it is told to."""

    def __init__(self, engine, *, refuses=0, silent=0, spoils=None, says=None):
        self._engine, self.refuses, self.silent = engine, refuses, silent
        self.says = says or EngineError("no answer")
        self.spoils = spoils

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def apply(self, plan):
        if self.refuses:
            self.refuses -= 1
            raise EngineError("no processors to be had")
        return self._engine.apply(plan)

    def observe(self, until_s):
        if self.silent:
            self.silent -= 1
            raise self.says
        pull = self._engine.observe(until_s)
        return self.spoils(pull) if self.spoils else pull


@pytest.fixture
def engine():
    with Simulator(sample_every=1) as simulator:
        simulator.start(ONE, Plan.here({"a": 7}))
        yield simulator


def test_an_outage_of_the_brokers_is_waited_for(engine):
    """The engine says when it is too long."""
    away = Stubborn(engine, silent=99, says=BrokerAway(102.0))
    loop = Loop(away, ONE, Static(), every_s=10)
    for _ in range(99):
        episode = loop.turn()
        assert not episode.observation.usable
        assert "no Kafka broker has answered for 1:42" in episode.decision.reason
    assert loop.turn().observation.usable


def test_a_full_disk_is_waited_for(engine):
    full = Stubborn(engine, silent=99, says=DiskFull("the state", "/state"))
    loop = Loop(full, ONE, Static(), every_s=10)
    for _ in range(99):
        episode = loop.turn()
        assert not episode.observation.usable
        assert "No space left on device; make room in /state" in episode.decision.reason
    assert loop.turn().observation.usable


def test_a_turn_looks_decides_acts_and_remembers(engine):
    loop = Loop(engine, ONE, Jump(9), every_s=10)
    episode = loop.turn()
    assert episode.observation.at_s == 10
    assert episode.decision.kind == "up"
    assert episode.cost == Cost(changed={"a": (7, 9)})
    assert engine.plan.allocation == loop.knowledge.allocation == {"a": 9}
    assert loop.knowledge.episodes == (episode,)
    assert loop.knowledge.changed_at_s == 10


def test_it_runs_until_it_is_time(engine):
    loop = Loop(engine, ONE, Static(), every_s=10)
    assert [e.observation.at_s for e in loop.run(35)] == [10, 20, 30]
    assert [e.observation.at_s for e in loop.run(60)] == [40, 50, 60]


def test_after_a_turn_that_failed_half_way_it_goes_on_with_what_runs(engine):
    loop = Loop(engine, ONE, Static(), every_s=10)
    loop.turn()
    engine.apply(Plan.here({"a": 5}))  # and then it failed
    loop.start_over()
    assert loop.knowledge.allocation == {"a": 5}
    assert len(loop.knowledge.episodes) == 1
    assert loop.turn().observation.usable


def test_a_passive_loop_recommends_and_changes_nothing(engine):
    loop = Loop(engine, ONE, Jump(9), every_s=10, mode=PASSIVE)
    episode = loop.turn()
    assert (episode.decision.after.allocation, episode.cost) == ({"a": 9}, None)
    assert engine.plan.allocation == {"a": 7}
    loop.follow(Jump(9))
    assert loop.turn().cost is not None
    assert engine.plan.allocation == {"a": 9}


def test_the_policy_may_be_changed_while_it_runs(engine):
    loop = Loop(engine, ONE, Jump(9), every_s=10)
    loop.turn()
    loop.follow(Jump(5))
    assert loop.turn().running.allocation == {"a": 5}


def test_what_the_engine_refuses_is_remembered_and_tried_again(engine):
    loop = Loop(Stubborn(engine, refuses=2), ONE, Jump(9), every_s=10)
    first, second, third = (loop.turn() for _ in range(3))
    assert first.failure == second.failure == "no processors to be had"
    assert (str(first.running), str(third.running)) == ("7", "9")
    assert loop.knowledge.changed_at_s == 30


def test_an_engine_that_does_not_answer_is_waited_for(engine):
    policy = Drs(goal=Goal(target=sj.Target("mean", 0.2)))
    loop = Loop(Stubborn(engine, silent=3), ONE, policy, every_s=10)
    episodes = [loop.turn() for _ in range(5)]
    assert [e.observation.usable for e in episodes] == [False] * 3 + [True] * 2
    assert episodes[0].decision.kind == "hold"
    assert episodes[0].decision.reason.endswith("the engine did not answer: no answer")


def test_an_engine_that_never_answers_is_gone(engine):
    loop = Loop(Stubborn(engine, silent=99), ONE, Static(), every_s=10)
    with pytest.raises(EngineError, match="no answer"):
        list(loop.run(10_000))


def test_an_application_that_stopped_is_not_waited_for(engine):
    def stopped(_until_s):
        raise ApplicationStopped("a record failed")

    broken = Stubborn(engine)
    broken.observe = stopped
    with pytest.raises(ApplicationStopped, match="a record failed"):
        Loop(broken, ONE, Static(), every_s=10).turn()


def test_what_is_set_from_outside_is_what_the_next_decision_starts_from(engine):
    loop = Loop(engine, ONE, Jump(9), every_s=10)
    seen = loop.look()
    engine.apply(Plan.here({"a": 5}))
    loop.set_from_outside(engine.plan)
    assert (loop.knowledge.allocation, loop.knowledge.changed_at_s) == ({"a": 5}, 10)
    episode = loop.decide(seen)
    assert (str(episode.decision.before), episode.cost.changed) == ("5", {"a": (5, 9)})


def test_what_is_set_from_outside_and_was_so_before_is_no_change(engine):
    loop = Loop(engine, ONE, Static(), every_s=10)
    loop.turn()
    loop.set_from_outside(Plan.here({"a": 7}))
    assert loop.knowledge.changed_at_s == 0


class TwoNodes:
    """An engine with two nodes, which remembers what it was told."""

    nodes = (Node("one"), Node("two"))

    def __init__(self, engine):
        self._engine, self.plan = engine, Plan(placement={"a": {"one": 3, "two": 4}})

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def apply(self, plan):
        self.plan, changed = plan, self.plan.changes(plan)
        return Cost(changed=changed)


def on_the_last(request):
    return {operator: {request.nodes[-1].name: k} for operator, k in request.allocation.items()}


@pytest.mark.parametrize(
    ("placer", "on"), [({}, {"one": 5, "two": 4}), ({"placer": on_the_last}, {"two": 9})]
)
def test_what_is_wanted_is_placed_on_the_nodes_of_the_engine(engine, placer, on):
    nodes = TwoNodes(engine)
    episode = Loop(nodes, ONE, Jump(9), every_s=10, **placer).turn()
    assert nodes.plan.placement == {"a": on}
    assert (nodes.plan, nodes.plan.reason) == (episode.running, "a test wants it")


def test_a_placer_that_answers_the_same_moves_nothing(engine):
    nodes = TwoNodes(engine)
    loop = Loop(nodes, ONE, Jump(7), every_s=10)
    moved, held = loop.turn(), loop.turn()
    assert moved.decision.kind == "move"
    assert moved.decision.after.placement == {"a": {"one": 4, "two": 3}}
    assert moved.decision.reason == "a test wants it; processors move to other nodes"
    assert (held.decision.kind, held.decision.reason) == ("hold", "a test wants it")


def test_processors_may_move_while_their_numbers_stay(engine):
    """By what was measured, a placer may want them elsewhere at any turn."""
    requests = []

    def by_turns(request):
        requests.append(request)
        return {"a": {request.nodes[len(requests) % 2].name: request.allocation["a"]}}

    nodes = TwoNodes(engine)
    loop = Loop(nodes, ONE, Jump(7), every_s=10, placer=by_turns)
    assert [loop.turn().decision.kind for _ in range(3)] == ["move"] * 3
    assert nodes.plan.placement == {"a": {"two": 7}}
    assert [request.placement for request in requests[1:]] == [
        {"a": {"two": 7}},
        {"a": {"one": 7}},
    ]


def test_another_placer_is_followed_from_the_next_turn_on(engine):
    nodes = TwoNodes(engine)
    loop = Loop(nodes, ONE, Jump(7), every_s=10)
    loop.turn()
    loop.follow(Jump(7), placer=on_the_last)
    assert loop.turn().decision.after.placement == {"a": {"two": 7}}


@pytest.mark.parametrize("jump_s", [-1e6, 1e6, nan])
def test_a_clock_that_jumps_does_not_move_the_loops_own(engine, jump_s):
    def spoils(pull):
        return replace(pull, since_s=pull.since_s + jump_s, at_s=pull.at_s + jump_s)

    broken = Stubborn(engine)
    loop = Loop(broken, ONE, Static(), every_s=10)
    loop.turn()
    broken.spoils = spoils
    jumped = [loop.turn() for _ in range(3)]
    broken.spoils = None
    after = [loop.turn() for _ in range(3)]
    assert [e.decision.at_s for e in (*jumped, *after)] == [20, 30, 40, 50, 60, 70]
    assert all(e.observation.lasted_s == 10 for e in (*jumped, *after))
    assert [e.observation.usable for e in after][1:] == [True, True]


@pytest.mark.parametrize("every_s", [0, -1, nan, float("inf")])
def test_a_time_between_looks_that_cannot_be_is_refused(engine, every_s):
    with pytest.raises(BadInput, match="every_s is"):
        Loop(engine, ONE, Static(), every_s=every_s)

from dataclasses import replace
from math import nan

import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal
from sojourn.act.node_scaling import NodeBounds
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.static import Static
from sojourn.decide.plan import Node, NodePlan, Plan
from sojourn.engine import Cost, NodeNeeds
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
    assert moved.decision.reason == "a test wants it; processors move to one, two"
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


class ElasticNodes(TwoNodes):
    """An engine that asks for nodes and gives them back; the test lets them come and go."""

    def __init__(self, engine, *names):
        super().__init__(engine)
        self.plan = Plan.here({"a": 7})
        self.nodes = [Node(name) for name in names]
        self.changed, self.needs = None, NodeNeeds()

    def node_needs(self):
        return self.needs

    def on_nodes_changed(self, changed):
        self.changed = changed

    def become(self, *names):
        """Let these be the nodes from now on."""
        self.nodes = [Node(name) for name in names]
        if self.changed:
            self.changed()


FIVE_EACH = NodeBounds(most=3, processors=5, calm_s=20.0)


def test_nodes_are_asked_for_used_when_they_come_and_given_back_each_with_a_reason(engine):
    nodes = ElasticNodes(engine, "one")
    wants = Jump(7)
    loop = Loop(nodes, ONE, wants, every_s=10, bounds=FIVE_EACH)
    asked = loop.turn().decision
    assert (asked.kind, asked.after.nodes) == ("move", NodePlan(number=2))
    assert asked.after.placement == {"a": {"one": 7}}
    assert "requests 2 nodes: 7 processors, 5 on each" in asked.reason
    assert loop.turn().decision.kind == "hold"
    nodes.become("one", "two")
    (came,) = loop.follow_nodes()
    assert nodes.plan.placement == {"a": {"one": 4, "two": 3}}
    assert came.decision.reason == "two joined; processors move to one, two"
    assert (came.looked, came.done) == (False, "move")
    wants.k = 5
    down, held, back = loop.turn().decision, loop.turn().decision, loop.turn().decision
    assert (down.kind, held.kind) == ("down", "hold")
    assert back.after.nodes == NodePlan(number=1, given_back=("two",))
    assert nodes.plan.placement == {"a": {"one": 5}}
    assert "releases two: not needed for 20 s" in back.reason
    nodes.become("one")
    (left,) = loop.follow_nodes()
    assert (left.decision.kind, left.decision.reason) == ("nodes", "two has left")
    assert loop.turn().decision.kind == "hold"


def test_a_node_that_is_lost_has_its_processors_elsewhere_at_once(engine):
    nodes = ElasticNodes(engine, "one", "two")
    loop = Loop(nodes, ONE, Jump(7), every_s=10)
    loop.follow_nodes()
    nodes.become("two")
    (lost,) = loop.follow_nodes()
    assert nodes.plan.placement == {"a": {"two": 7}}
    assert lost.decision.reason == "one was lost; processors move to two"
    nodes.become()
    assert not loop.follow_nodes()  # they stay where they are until a node comes
    nodes.become("three")
    assert loop.follow_nodes()[0].decision.reason == "three joined; processors move to three"


def test_without_a_node_other_numbers_are_left_open_until_one_comes(engine):
    nodes = ElasticNodes(engine)
    loop = Loop(nodes, ONE, Jump(9), every_s=10)
    assert loop.turn().decision.after == Plan.here({"a": 9})
    nodes.become("one")
    loop.follow_nodes()
    assert nodes.plan.placement == {"a": {"one": 9}}


def test_nodes_follow_the_processors_that_there_are_while_others_are_only_recommended(engine):
    """A loop that is paused or passive uses nodes that come, and asks for those needed."""
    nodes = ElasticNodes(engine, "one")
    loop = Loop(nodes, ONE, Jump(99), every_s=10, mode=PASSIVE, bounds=FIVE_EACH)
    asked = loop.turn()
    assert asked.cost is not None
    assert asked.decision.after.nodes == NodePlan(number=2)
    assert asked.decision.reason.startswith("only recommended: a test wants it; requests 2")
    assert asked.decision.wish.reason == "only recommended: a test wants it"
    advised = loop.turn()
    assert (advised.done, advised.decision.after.nodes.number) == ("up advised", 3)
    nodes.become("one", "two")
    loop.follow_nodes()
    assert nodes.plan.placement == {"a": {"one": 4, "two": 3}}
    assert nodes.plan.nodes == NodePlan(number=2)


def test_an_order_by_hand_gets_the_nodes_that_it_needs(engine):
    nodes = ElasticNodes(engine, "one")
    loop = Loop(nodes, ONE, Jump(7), every_s=10, mode=PASSIVE, bounds=FIVE_EACH)
    done = loop.set_processors({"a": 11}, "set by hand")
    assert done.decision.reason == (
        "set by hand; requests 3 nodes, the maximum: 11 processors, 5 on each"
    )
    assert nodes.plan.nodes == NodePlan(number=3)


def test_what_the_engine_runs_elsewhere_is_not_placed_and_needs_no_node(engine):
    nodes = ElasticNodes(engine, "one", "two")
    nodes.needs = NodeNeeds(least=2, unplaced=frozenset({"a"}))
    loop = Loop(nodes, ONE, Jump(7), every_s=10, bounds=FIVE_EACH)
    decision = loop.turn().decision
    assert decision.after.placement == {"a": {"here": 7}}
    nodes.become("one")
    assert loop.turn().decision.after.nodes == NodePlan(number=2)


def test_what_happens_to_nodes_between_turns_is_yielded_before_the_turn(engine):
    nodes = ElasticNodes(engine, "one")
    loop = Loop(nodes, ONE, Jump(7), every_s=10)
    passing = loop.run(30)
    next(passing)
    nodes.become("one", "two")
    between, turn = next(passing), next(passing)
    assert (between.looked, turn.looked) == (False, True)
    assert "two joined" in between.decision.reason


def test_the_model_knows_which_nodes_will_come(engine):
    nodes = ElasticNodes(engine, "one")
    seen = Loop(nodes, ONE, Jump(7), every_s=10, bounds=FIVE_EACH).look()
    assert (seen.per_node, seen.most_nodes) == (5, 3)
    seen = Loop(nodes, ONE, Jump(7), every_s=10).look()
    assert (seen.per_node, seen.most_nodes) == (0, 0)


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

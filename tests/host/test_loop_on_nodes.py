"""The loop places processors of a real host on real agents: plans, and nodes that die."""

import time

import pytest

import sojourn as sj
from host.clustering import cluster_in, lines_of, words_of
from sojourn.act.policy.static import Static
from sojourn.decide.plan import HERE, Node, Plan
from sojourn.loop import Loop
from sojourn.spark.driver.run.placed_processors import PlacedProcessors

WHERE = sj.Topology(
    name="where",
    arrivals=(sj.Arrival(name="in", per_s=1, into="where"),),
    operators=(sj.Operator(name="where", service_s=0.01),),
)


@pytest.fixture
def cluster(short_folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with cluster_in(short_folder) as made:
        yield made


class OnHosts:
    """The engine of one host: what the loop needs to place processors on agents."""

    name = "a host"

    def __init__(self, controller, processors):
        self._controller, self._began_s = controller, time.monotonic()
        self.placed = PlacedProcessors(
            Plan.here({"where": processors}), ["where"], controller, on_cluster=True
        )
        self.placed.use(lambda: [Node(name) for name in sorted(controller.nodes())])

    @property
    def now_s(self):
        return time.monotonic() - self._began_s

    @property
    def nodes(self):
        return self.placed.nodes

    @property
    def plan(self):
        return self.placed.plan

    def apply(self, plan):
        return self.placed.apply(plan, WHERE)


def test_processors_are_where_the_loop_wants_them_and_anywhere_until_it_has_decided(cluster):
    query = cluster.start(on={})
    doomed = cluster.agent("executor-1")
    cluster.agent("executor-2")
    cluster.until(lambda: len(cluster.controller.nodes()) == 2)
    engine = OnHosts(cluster.controller, 3)
    assert engine.plan.placement == {"where": {HERE: 3}}
    cluster.runs(executor_1=2, executor_2=1)  # a plan that leaves it open is not waited for
    loop = Loop(engine, WHERE, Static(), every_s=1.0)
    (placed,) = loop.follow_nodes()
    assert placed.decision.reason == "processors run on executor-1, executor-2"
    cluster.runs(executor_1=2, executor_2=1)
    doomed.kill()
    cluster.runs(executor_2=3)  # although nothing has been decided
    (lost,) = loop.follow_nodes()
    assert lost.decision.reason == "executor-1 was lost; processors move to executor-2"
    cluster.agent("executor-3")
    cluster.until(lambda: "executor-3" in cluster.controller.nodes())
    (joined,) = loop.follow_nodes()
    reason = joined.decision.reason
    assert reason.startswith("executor-3 joined; processors move to executor-2, ")
    cluster.runs(executor_2=2, executor_3=1)
    loop.set_processors({"where": 5}, "a test wants them")
    cluster.runs(executor_2=3, executor_3=2)
    rows = query.results(*lines_of(50))
    assert words_of(rows) == sorted(f"word-{n}" for n in range(50))

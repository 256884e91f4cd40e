"""What every engine has to hold, so that the loop may drive any of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.engine import Engine
from sojourn.errors import BadAllocation, EngineError
from sojourn.simulate.nodes import NodeSettings
from sojourn.simulate.real_time import InstantClock, RealTimeSimulator
from sojourn.simulate.simulator import Simulator

CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(
        sj.Operator(name="a", service_s=0.03, emits={"b": 2}),
        sj.Operator(name="b", service_s=0.01),
    ),
)
ENOUGH = Plan.here({"a": 3, "b": 2})


@dataclass(frozen=True)
class Kind:
    """An engine under test, and how many roots enter in what it takes for a second."""

    make: Callable[[], Engine]
    per_s: float = 50.0


def instant_simulator():
    """Return the simulator that `sojourn run` has, on a clock that nobody waits for."""
    return RealTimeSimulator(clock=InstantClock())


class Faster:
    """An engine that lives ten seconds in one: what runs on Spark takes its time.

    Its clock begins when the load does.
    """

    def __init__(self, engine, load):
        self._engine, self._load, self._began_s = engine, load, 0.0

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def __enter__(self):
        self._engine.__enter__()
        return self

    def __exit__(self, *error):
        self.stop()

    @property
    def now_s(self):
        return (
            10 * (self._engine.now_s - self._began_s) if self._engine.plan.processors else 0.0
        )

    def start(self, topology, plan):
        self._engine.start(topology, plan)
        self._load.start()
        entered = completed = 0
        # Java is cold, and the first records wait for it
        while completed < 20 or entered > completed + 5:
            self._began_s = self._engine.now_s + 1.0
            pull = self._engine.observe(self._began_s)
            entered += pull.roots.entered
            completed += pull.roots.completed

    def stop(self):
        self._load.stop()
        self._engine.stop()

    def observe(self, until_s):
        pull = self._engine.observe(self._began_s + until_s / 10)
        return replace(
            pull,
            since_s=round(10 * (pull.since_s - self._began_s), 6),
            at_s=round(10 * (pull.at_s - self._began_s), 6),
            operators=tuple(replace(o, bin_s=10 * o.bin_s) for o in pull.operators),
        )


@pytest.fixture(scope="module")
def loaded(jars, tmp_path_factory):
    """Return the chain's application, with a broker of its own."""
    from sojourn.spark.driver.kafka.broker import Broker  # noqa: PLC0415 - only where there is Java
    from spark.loaded import quiet  # noqa: PLC0415 - as above

    with Broker(jars=jars, secured=False) as broker:
        yield quiet(CHAIN, broker.bootstrap_servers, tmp_path_factory.mktemp("loaded"))


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Return how an application runs on a trial cluster."""
    from sojourn_trial.cluster.trial_cluster import TrialCluster  # noqa: PLC0415 - as above

    folder = tmp_path_factory.mktemp("trial")
    with TrialCluster(nodes=2, cores=4, folder=folder / "cluster", plain=True) as cluster:
        yield {
            "master": cluster.master,
            "spark": {
                "spark.driver.host": cluster.driver_address,
                "spark.executor.cores": "4",
                "spark.executor.memory": "600m",
            },
        }


@pytest.fixture
def engine(request):
    """Return the kind of engine under test."""
    if request.param in {"spark", "cluster"}:
        from spark.loaded import load_of  # noqa: PLC0415 - only where there is Java

        loaded = request.getfixturevalue("loaded")
        there = request.getfixturevalue("trial") if request.param == "cluster" else {}
        # no batch ends within a test: that is a pause of half a second, which is ten of these
        made = partial(loaded.engine, batch_s=60.0, **there)
        return Kind(lambda: Faster(made(), load_of(CHAIN, loaded)), per_s=5.0)
    return Kind(request.param)


def engines(*marks):
    """Return the mark of a test that every engine has to pass; on Spark with *marks*."""
    return pytest.mark.parametrize(
        "engine",
        [
            pytest.param(Simulator, id="simulator"),
            pytest.param(instant_simulator, id="real-time-simulator"),
            pytest.param(
                partial(Simulator, pause_s=0.5, sample_every=1), id="simulator-that-pauses"
            ),
            pytest.param(
                partial(Simulator, nodes=NodeSettings(first=2)), id="simulator-with-nodes"
            ),
            pytest.param("spark", id="spark", marks=[pytest.mark.spark, *marks]),
            pytest.param("cluster", id="cluster", marks=[pytest.mark.spark, pytest.mark.slow]),
        ],
        indirect=True,
    )


every_engine = engines()
# Spark takes some ten seconds to start: what is least likely to differ runs with all tests.
every_engine_at_times = engines(pytest.mark.slow)


@every_engine_at_times
def test_what_was_started_is_what_is_seen(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        pull = running.observe(20.0)
        assert running.plan.allocation == ENOUGH.allocation
        assert (pull.since_s, pull.at_s) == (0.0, 20.0)
        assert {o.name: (o.wanted, o.running) for o in pull.operators} == {
            "a": (3, 3),
            "b": (2, 2),
        }


@every_engine
def test_observe_shows_the_plan_that_was_applied(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        running.observe(10.0)
        running.apply(Plan.here({"a": 6, "b": 1 + 1}))
        running.observe(20.0)
        running.apply(Plan.here({"a": 2, "b": 4}))
        seen = running.observe(40.0)
        assert {o.name: o.wanted for o in seen.operators} == {"a": 2, "b": 4}
        assert {o.name: o.running for o in seen.operators} == {"a": 2, "b": 4}


@every_engine_at_times
def test_applying_twice_is_applying_once(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        running.observe(10.0)
        first = running.apply(Plan.here({"a": 5, "b": 2}))
        again = running.apply(Plan.here({"a": 5, "b": 2}))
        assert first.changed == {"a": (3, 5)}
        assert not again.changed
        assert again.pause_s == 0


@every_engine_at_times
def test_nothing_is_lost_by_changing(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        entered = completed = 0
        for turn in range(1, 21):
            pull = running.observe(5.0 * turn)
            entered += pull.roots.entered
            completed += pull.roots.completed
            running.apply(Plan.here({"a": 2 + turn % 4, "b": 2 + turn % 3}))
        for turn in range(21, 25):
            pull = running.observe(5.0 * turn)
            entered += pull.roots.entered
            completed += pull.roots.completed
        waiting = sum(operator.backlog for operator in pull.operators)
        # a few may have been on their way when it began
        assert completed - 5 <= entered <= completed + waiting + 5
        assert entered == pytest.approx(120 * engine.per_s, rel=0.1)


@every_engine_at_times
def test_counts_begin_anew_with_each_look(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        looks = [running.observe(30.0 * turn) for turn in (1, 2, 3)]
        for pull in looks:
            arrived = {o.name: sum(o.arrivals) for o in pull.operators}
            assert arrived["a"] == pytest.approx(30 * engine.per_s, rel=0.15)
            assert arrived["b"] == pytest.approx(60 * engine.per_s, rel=0.15)
            assert pull.roots.entered == arrived["a"]
            for operator in pull.operators:
                assert len(operator.arrivals) * operator.bin_s == pytest.approx(30.0)
                served = sum(p.served for p in operator.processors)
                assert served == pytest.approx(arrived[operator.name], rel=0.1)


@every_engine
def test_what_does_not_run_says_so(engine):
    idle = engine.make()
    for ask in (lambda: idle.observe(1.0), lambda: idle.apply(ENOUGH)):
        with pytest.raises(EngineError, match=r"nothing is running; call start\(\) first"):
            ask()
    idle.stop()  # does nothing
    assert idle.now_s == 0


@every_engine_at_times
def test_it_starts_once_and_again_after_a_stop(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        with pytest.raises(EngineError, match="is already running"):
            running.start(CHAIN, ENOUGH)
        running.observe(5.0)
        running.stop()
        running.start(CHAIN, ENOUGH)
        assert running.observe(5.0).since_s == 0


@every_engine_at_times
def test_time_does_not_go_back(engine):
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        running.observe(5.0)
        for until_s in (5.0, 4.0, float("nan")):
            with pytest.raises(EngineError, match="is not after"):
                running.observe(until_s)


@every_engine_at_times
def test_plans_that_do_not_fit_are_refused_and_change_nothing(engine):
    elsewhere = Plan(placement={"a": {"the moon": 4}, "b": {"here": 2}})
    unknown = "a: there is no node 'the moon'; place it on (here|executor-|node-)"
    with engine.make() as running:
        for plan, problem in (
            (Plan.here({"a": 1}), "no processors for b"),
            (elsewhere, unknown),
        ):
            with pytest.raises(BadAllocation, match=problem):
                running.start(CHAIN, plan)
        running.start(CHAIN, ENOUGH)
        more = Plan.here({"a": 4, "b": 2, "c": 1})
        for plan, problem in ((more, "there is no operator 'c'"), (elsewhere, unknown)):
            with pytest.raises(BadAllocation, match=problem):
                running.apply(plan)
        assert running.plan.allocation == ENOUGH.allocation
        assert {o.name: o.wanted for o in running.observe(5.0).operators} == {"a": 3, "b": 2}


@every_engine
def test_a_plan_may_leave_open_where_processors_run_and_place_them(engine):
    """Nodes of a cluster are known only once it has started."""
    with engine.make() as running:
        running.start(CHAIN, ENOUGH)
        first, *_ = running.nodes
        placed = Plan(placement={"a": {first.name: 3}, "b": {first.name: 2}})
        assert not running.apply(placed).changed
        assert running.plan.placement == placed.placement
        assert not running.apply(ENOUGH).changed


@every_engine
def test_its_nodes_are_known_before_it_starts(engine):
    """A first plan has to be placed on them."""
    assert [node.name for node in engine.make().nodes] == ["here"]

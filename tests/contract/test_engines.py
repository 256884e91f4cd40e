"""What every engine has to hold, so that the loop may drive any of them."""

import pytest

import sojourn as sj
from sojourn.errors import BadAllocation, EngineError
from sojourn.simulate.engine import Simulator

CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(
        sj.Operator(name="a", service_s=0.03, emits={"b": 2}),
        sj.Operator(name="b", service_s=0.01),
    ),
)
ENOUGH = {"a": 3, "b": 2}

every_engine = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(Simulator, id="simulator"),
        pytest.param(
            lambda: Simulator(pause_s=0.5, sample_every=1), id="simulator-that-pauses"
        ),
    ],
)


@every_engine
def test_what_was_started_is_what_is_seen(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        pull = running.observe(20.0)
        assert running.allocation == ENOUGH
        assert (pull.since_s, pull.at_s) == (0.0, 20.0)
        assert {o.name: (o.wanted, o.running) for o in pull.operators} == {
            "a": (3, 3),
            "b": (2, 2),
        }


@every_engine
def test_observe_shows_the_plan_that_was_applied(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        running.observe(10.0)
        running.apply({"a": 6, "b": 1 + 1})
        running.observe(20.0)
        running.apply({"a": 2, "b": 4})
        seen = running.observe(40.0)
        assert {o.name: o.wanted for o in seen.operators} == {"a": 2, "b": 4}
        assert {o.name: o.running for o in seen.operators} == {"a": 2, "b": 4}


@every_engine
def test_applying_twice_is_applying_once(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        running.observe(10.0)
        first = running.apply({"a": 5, "b": 2})
        again = running.apply({"a": 5, "b": 2})
        assert first.changed == {"a": (3, 5)}
        assert not again.changed
        assert again.pause_s == 0


@every_engine
def test_nothing_is_lost_by_changing(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        entered = completed = 0
        for turn in range(1, 21):
            pull = running.observe(5.0 * turn)
            entered += pull.roots.entered
            completed += pull.roots.completed
            running.apply({"a": 2 + turn % 4, "b": 2 + turn % 3})
        for turn in range(21, 25):
            pull = running.observe(5.0 * turn)
            entered += pull.roots.entered
            completed += pull.roots.completed
        waiting = sum(operator.backlog for operator in pull.operators)
        assert 0 <= entered - completed <= waiting + 5
        assert entered == pytest.approx(50 * 120, rel=0.1)


@every_engine
def test_counts_begin_anew_with_each_look(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        looks = [running.observe(30.0 * turn) for turn in (1, 2, 3)]
        for pull in looks:
            arrived = {o.name: sum(o.arrivals) for o in pull.operators}
            assert arrived["a"] == pytest.approx(1500, rel=0.15)
            assert arrived["b"] == pytest.approx(3000, rel=0.15)
            assert pull.roots.entered == arrived["a"]
            for operator in pull.operators:
                assert len(operator.arrivals) * operator.bin_s == pytest.approx(30.0)
                served = sum(p.served for p in operator.processors)
                assert served == pytest.approx(arrived[operator.name], rel=0.1)


@every_engine
def test_what_does_not_run_says_so(engine):
    idle = engine()
    for ask in (lambda: idle.observe(1.0), lambda: idle.apply(ENOUGH)):
        with pytest.raises(EngineError, match="nothing runs; start it first"):
            ask()
    idle.stop()  # does nothing
    assert idle.now_s == 0


@every_engine
def test_it_starts_once_and_again_after_a_stop(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        with pytest.raises(EngineError, match="runs already"):
            running.start(CHAIN, ENOUGH)
        running.observe(5.0)
        running.stop()
        running.start(CHAIN, ENOUGH)
        assert running.observe(5.0).since_s == 0


@every_engine
def test_time_does_not_go_back(engine):
    with engine() as running:
        running.start(CHAIN, ENOUGH)
        running.observe(5.0)
        for until_s in (5.0, 4.0, float("nan")):
            with pytest.raises(EngineError, match="is not after"):
                running.observe(until_s)


@every_engine
def test_allocations_that_do_not_fit_are_refused_and_change_nothing(engine):
    with engine() as running:
        with pytest.raises(BadAllocation):
            running.start(CHAIN, {"a": 1})
        running.start(CHAIN, ENOUGH)
        with pytest.raises(BadAllocation):
            running.apply({"a": 0, "b": 2})
        assert running.allocation == ENOUGH

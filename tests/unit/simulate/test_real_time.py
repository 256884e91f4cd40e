"""The simulator as a running application: its clock, changes while it is looked at, its end."""

import threading
import time

import pytest

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.engine import Drains, HasHealth, HasKafka
from sojourn.simulate.real_time import InstantClock, RealTimeSimulator, WallClock
from sojourn.simulate.workload import Rates, SimulatorSettings, Workload

ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.05, service_scv=0.0),),
)


class SteppedClock(InstantClock):
    """A clock that stops on its way where it is told to, for another thread to do something."""

    def __init__(self):
        super().__init__()
        self.waiting, self.go_on = threading.Event(), threading.Event()
        self.stops_at_s = None

    def wait_until(self, at_s):
        if self.stops_at_s is not None:
            super().wait_until(self.stops_at_s)
            self.waiting.set()
            self.go_on.wait(10)
        super().wait_until(at_s)


def begun(processors=4, **told):
    engine = RealTimeSimulator(**({"clock": InstantClock()} | told))
    engine.start(ONE, Plan.here({"a": processors}))
    return engine


def test_a_look_waits_until_its_time_has_come():
    engine = begun(clock=WallClock())
    began_s = time.monotonic()
    pull = engine.observe(engine.now_s + 0.3)
    assert 0.25 < time.monotonic() - began_s < 5
    assert engine.now_s >= pull.at_s
    assert engine.observe(engine.now_s + 0.1).since_s == pull.at_s


def test_a_change_while_another_looks_takes_effect_then():
    """With 8 of 10 s behind it, there are 4 processors for 8 s and 2 for 2 s."""
    clock = SteppedClock()
    engine, pulls = begun(clock=clock), []
    engine.observe(10.0)
    clock.stops_at_s = 18.0
    looking = threading.Thread(target=lambda: pulls.append(engine.observe(20.0)), daemon=True)
    looking.start()
    clock.waiting.wait(10)
    assert engine.apply(Plan.here({"a": 2})).changed == {"a": (4, 2)}
    clock.go_on.set()
    looking.join(10)
    operator = pulls[0].operators[0]
    # 50 records a second for 8 s, and 40 for 2 s, are the most that is possible
    assert sum(p.served for p in operator.processors) == pytest.approx(480, abs=45)
    assert (operator.wanted, operator.running) == (2, 2)
    assert sum(operator.arrivals) == pytest.approx(500, abs=70)


def test_drained_it_lets_nothing_in_and_all_that_entered_out():
    engine, said = begun(processors=1), []
    pull = engine.observe(10.0)
    waits = pull.roots.entered - pull.roots.completed
    engine.drain(said.append)
    assert said == [f"waiting for {waits} roots in flight", "drained"]
    assert engine.now_s == pytest.approx(10.0 + 0.05 * waits, abs=1)
    assert engine.uncommitted() == 0
    said.clear()
    engine.drain(said.append)
    assert said == ["drained"]


def test_what_is_in_service_or_on_its_way_when_it_is_drained_goes_on():
    far = sj.Topology(
        name="far",
        arrivals=ONE.arrivals,
        operators=(
            sj.Operator(name="a", service_s=0.05, emits={"b": 2}, transfer_s=0.2),
            sj.Operator(name="b", service_s=0.01, transfer_s=0.2),
        ),
    )
    engine = RealTimeSimulator(clock=InstantClock())
    engine.start(far, Plan.here({"a": 5, "b": 3}))
    pull = engine.observe(20.0)
    engine.drain(lambda _line: None)
    entered = pull.roots.entered
    pull = engine.observe(engine.now_s + 5.0)
    assert pull.roots.entered == 0
    assert entered > 0
    assert sum(sum(o.arrivals) for o in pull.operators) == 0


def test_the_load_is_the_one_it_is_told():
    steps = Rates.steps((0, 10), (100, 100))
    engine = begun(9, settings=SimulatorSettings(workload=Workload(rates={"in": steps})))
    few, many = engine.observe(100.0), engine.observe(200.0)
    assert few.roots.entered == pytest.approx(1000, rel=0.15)
    assert many.roots.entered == pytest.approx(10_000, rel=0.1)


def test_it_says_what_it_can_do():
    engine = begun()
    assert isinstance(engine, HasHealth)
    assert isinstance(engine, Drains)
    assert not isinstance(engine, HasKafka)
    assert engine.health().running == {"a": 4}
    engine.stop()
    assert engine.health().running == {}

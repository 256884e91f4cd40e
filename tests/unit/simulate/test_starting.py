"""Processors that take a time to start, by themselves and on the simulator."""

from hypothesis import given
from hypothesis import strategies as st

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.starting import Starting

DELAY_S = 10.0
ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=1.0, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.1),),
)
orders = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 9)), min_size=1, max_size=12)


@given(orders)
def test_each_processor_runs_after_its_delay_if_it_was_wanted_all_the_time(drawn):
    starting, at_s, running, wanted = Starting({"a": 3}, delay_s=DELAY_S), 0, 3, [(-99, 3)]
    for gap_s, number in drawn:
        for _ in range(gap_s):  # second by second
            at_s += 1
            running = starting.due(at_s).get("a", running)
            running = _checked(running, wanted, at_s)
        running = starting.change({"a": number}, at_s).get("a", running)
        wanted.append((at_s, number))
        running = _checked(running, wanted, at_s)
    assert starting.due(at_s + DELAY_S).get("a", running) == wanted[-1][1]
    assert starting.next_s == float("inf")


def _checked(running, wanted, at_s):
    """Return *running*, which is as many as were wanted at every moment of the delay."""
    begun = [number for since_s, number in wanted if since_s <= at_s - DELAY_S][-1]
    since = [number for since_s, number in wanted if since_s > at_s - DELAY_S]
    assert running >= min([begun, *since])
    assert running <= wanted[-1][1]
    return running


def test_the_simulator_starts_them_in_the_middle_of_an_observation():
    with Simulator(starts_s=4.0) as engine:
        engine.start(ONE, Plan.here({"a": 2}))
        engine.observe(3.0)
        cost = engine.apply(Plan.here({"a": 5}))
        assert cost.changed == {"a": (2, 5)}
        assert engine.running() == {"a": 2}
        (seen,) = engine.observe(6.0).operators
        assert (seen.wanted, seen.running) == (5, 2)
        (seen,) = engine.observe(9.0).operators
        assert (seen.wanted, seen.running) == (5, 5)
        engine.apply(Plan.here({"a": 1}))
        engine.observe(9.5)
        assert engine.running() == {"a": 1}

"""What every policy has to hold, so that the loop may obey any of them.

With `--policy package.module:name` it is tested on that one.
"""

from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sojourn as sj
from sojourn.act.policy import names, policy
from sojourn.decide.plan import HERE, Node, Plan
from sojourn.decide.target import Target
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.knowledge import Knowledge
from sojourn.loop import Loop, Site, step
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch
from sojourn.simulate.simulator import Simulator
from strategies import topologies

ONE_MACHINE = Site(nodes=[Node(HERE)])

TARGET = Target("mean", 1.0)
EVERY_S = 30.0

CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=20, into="a"),),
    operators=(
        sj.Operator(name="a", service_s=0.19, emits={"b": 1}),
        sj.Operator(name="b", service_s=0.09),
    ),
)

# Turns of 30 s until an overload is answered. Flink's lets the start settle for 5 minutes and
# then measures for 15.
TURNS = {"drs": 2, "ds2": 2, "threshold": 3, "flink": 40}
MOST_TURNS = max(TURNS.values())

hurried = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])


def pytest_generate_tests(metafunc):
    """Test every policy in the folder, or those from outside that were named."""
    every = metafunc.config.getoption("policy") or names()
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", every)
    if "acting" in metafunc.fixturenames:
        metafunc.parametrize("acting", [name for name in every if name != "static"])


# -- whatever was measured --------------------------------------------------------------------

_seconds = st.sampled_from([0.0, 1e-4, 10.0]) | st.floats(0, 10)


class _Drawn(NamedTuple):
    """How high rates and backlogs may be."""

    rates_per_s: st.SearchStrategy
    backlogs: st.SearchStrategy


_ANY = _Drawn(
    st.sampled_from([0.0, 1e-3, 1.0, 1e5]) | st.floats(0, 1000),
    st.sampled_from([0, 1, 10**9]) | st.integers(0, 10_000),
)
# DRS searches for a plan several times a turn, processor by processor, and a target near its
# floor takes a hundred times those that are busy: at most some 1,000 are.
_DRAWN = {
    "drs": _Drawn(
        st.sampled_from([0.0, 1e-3, 1.0, 100.0]) | st.floats(0, 100),
        st.sampled_from([0, 1, 10**5]) | st.integers(0, 10_000),
    )
}


@st.composite
def _seen(draw, drawn, name, running, stuck):
    number = draw(st.sampled_from([0, 1, 29, 30, 1000]))
    mean_s, scv = draw(_seconds), draw(st.floats(0, 4))
    served_per_s = draw(drawn.rates_per_s)
    return ObservedOperator(
        name=name,
        wanted=running,
        running=running // 2 if stuck else draw(st.just(running) | st.integers(0, 2 * running)),
        backlog=draw(drawn.backlogs),
        arrivals_per_s=draw(st.just(served_per_s) | drawn.rates_per_s),
        served_per_s=served_per_s,
        served=served_per_s * EVERY_S,
        service=Moments(number, number * mean_s, number * mean_s**2 * (1 + scv)),
        wait=Moments(number, number * draw(_seconds), number * 200.0),
        arrival_scv=draw(st.none() | st.floats(0, 4)),
        bins=30,
        utilisation=draw(st.none() | st.floats(0, 1.5)),
        cpu_s=draw(st.none() | _seconds),
    )


@st.composite
def _observations(draw, drawn, allocation, at_s, stuck):
    if draw(st.integers(0, 9)) == 0:
        return Observation.unusable(at_s - EVERY_S, at_s, "a counter ran backwards")
    latencies_s = Sketch.of(draw(st.lists(st.floats(1e-3, 1e3), max_size=5)))
    return Observation(
        since_s=at_s - EVERY_S,
        at_s=at_s,
        operators={
            name: draw(_seen(drawn, name, k, name in stuck)) for name, k in allocation.items()
        },
        arrivals_per_s=draw(drawn.rates_per_s),
        completed_per_s=draw(drawn.rates_per_s),
        completions=latencies_s,
        sums=latencies_s,
        cores=draw(st.none() | st.floats(0.1, 64)),
        busy_cores=draw(st.none() | st.floats(0, 70)),
    )


@st.composite
def _allocations(draw, topology):
    return {
        operator.name: draw(st.integers(operator.min_processors, operator.max_processors or 40))
        for operator in topology.operators
    }


def _check(decision, known, most):
    assert decision.at_s == known.at_s
    assert decision.before == known.plan
    assert decision.after.allocation.keys() == known.topology.operator.keys()
    assert decision.reason.strip()
    for name, k in decision.after.allocation.items():
        operator = known.topology.operator[name]
        assert isinstance(k, int)
        assert operator.min_processors <= k
        assert operator.max_processors is None or k <= operator.max_processors
    assert most is None or decision.after.processors <= most
    if not known.seen.usable:
        assert decision.kind == "hold"
        assert known.seen.reason in decision.reason


@hurried
@given(data=st.data())
def test_whatever_is_measured_there_is_a_decision_within_all_bounds(name, data):
    topology = data.draw(topologies(max_operators=4), label="topology")
    topology = replace(topology, cores=data.draw(st.none() | st.floats(0.1, 64)))
    allocation = data.draw(_allocations(topology), label="allocation")
    most = data.draw(st.none() | st.integers(0, 50).map(sum(allocation.values()).__add__))
    pause_s = data.draw(st.sampled_from([0.0, 7.0]))
    decide, drawn = policy(name, target=TARGET, most=most), _DRAWN.get(name, _ANY)
    known = Knowledge(
        topology=topology, plan=Plan.here(allocation), keep=data.draw(st.integers(1, 4))
    )
    # processors that do not start at any look
    stuck = data.draw(st.sets(st.sampled_from(list(allocation))), label="stuck")
    at_s = 0.0
    for _ in range(data.draw(st.integers(1, 5))):
        at_s += data.draw(st.sampled_from([EVERY_S, 1200.0, 5000.0]))
        observation = data.draw(_observations(drawn, known.allocation, at_s, stuck))
        known, decision = step(known, observation, decide, ONE_MACHINE)
        _check(decision, known, most)
        wish = decide(known)
        assert (wish.allocation, wish.reason) == (decision.after.allocation, decision.reason)
        assert decide(known) == wish
        changed = decision.before.changes(decision.after)
        cost = Cost(pause_s=pause_s, changed=changed) if changed else None
        known = known.did(decision, cost)


# -- what really happens ----------------------------------------------------------------------


def _loop(running, name, allocation, most=None):
    running.start(CHAIN, Plan.here(allocation))
    return Loop(running, CHAIN, policy(name, target=TARGET, most=most), every_s=EVERY_S)


def test_an_overload_gets_processors_within_the_turns_it_may_take(acting):
    with Simulator() as running:
        loop = _loop(running, acting, {"a": 2, "b": 1})
        turns = [loop.turn() for _ in range(TURNS.get(acting, MOST_TURNS))]
        assert "up" in [turn.decision.kind for turn in turns]
        assert running.plan.allocation["a"] > 2
        assert running.plan.allocation == loop.knowledge.allocation


def test_an_overload_is_worked_off_in_the_end(acting):
    with Simulator() as running:
        loop = _loop(running, acting, {"a": 2, "b": 1})
        turns = [loop.turn() for _ in range(4 * MOST_TURNS)]
        # one that goes by a single interval has too few now and then
        for operator, needed in {"a": 4, "b": 2}.items():
            assert max(turn.running.allocation[operator] for turn in turns[-20:]) >= needed
        assert sum(o.backlog for o in turns[-1].observation.operators.values()) < 1000


def test_an_overload_beyond_what_there_may_be_is_borne(name):
    with Simulator() as running:
        loop = _loop(running, name, {"a": 2, "b": 1}, most=4)
        for _ in range(MOST_TURNS + 2):
            turn = loop.turn()
            assert turn.running.processors <= 4
            assert turn.decision.reason.strip()


def test_what_is_wanted_is_told_with_every_decision(acting):
    with Simulator() as running:
        loop = _loop(running, acting, {"a": 6, "b": 3})
        assert all(loop.turn().decision.wish.wanted for _ in range(3))


# -- the folder -------------------------------------------------------------------------------


def test_a_policy_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(BadInput, match=f"'none'; write one of {', '.join(names())}"):
        policy("none", target=TARGET)

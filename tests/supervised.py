"""A small application under a supervisor, and policies that make it move."""

from itertools import islice

import sojourn as sj
from live_engine import LiveSimulator
from sojourn.act.policy import policy
from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.knowledge import Wish
from sojourn.service.orders import LoopSettings
from sojourn.service.supervisor import Supervisor

CHAIN = sj.Topology(
    name="chain",
    arrivals=(sj.Arrival(name="in", per_s=50, into="a"),),
    operators=(
        sj.Operator(name="a", service_s=0.05, emits={"b": 1}, min_processors=2),
        sj.Operator(name="b", service_s=0.02, max_processors=6),
    ),
)
ENOUGH = {"a": 4, "b": 2}


class Jump:
    """A policy that wants one processor more for `a` at each turn."""

    def __call__(self, knowledge, /):
        before = knowledge.allocation
        return Wish(allocation={**before, "a": before["a"] + 1}, reason="a test")


class Broken:
    """A policy that fails as often as it is told to."""

    def __init__(self, times=10**9):
        self.times = times

    def __call__(self, knowledge, /):
        if self.times > 0:
            self.times -= 1
            raise ZeroDivisionError("by zero")
        return Static()(knowledge)


def begun(decides=None, *, engine=None, save=lambda _allocation: None, **begins):
    """Return the application with a policy that is always the same, or drs."""
    engine = engine or LiveSimulator()
    engine.start(CHAIN, Plan.here(ENOUGH))

    def make(target, most):
        said = f"{target}, {most}"
        return decides or policy("drs", target=target, most=most), said

    begins = {"objective": sj.Objective(target=sj.Target("mean", 0.2)), "every_s": 1.0} | begins
    return Supervisor(engine, CHAIN, make, LoopSettings(**begins), save)


def turned(running, number):
    return list(islice(running.turns(), number))

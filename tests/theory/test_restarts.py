"""A start under a backlog: what works it off is asked for, and no more than cores can run."""

from dataclasses import replace
from math import floor

import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.loop import Loop
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload
from sojourn.topology.traffic import rates

EVERY_S, DRAIN_S, FILLS_S, WARMS_S = 1.0, 30.0, 60.0, 10.0
NESTED = sj.Topology(
    name="nested",
    arrivals=(sj.Arrival(name="in", per_s=30, into="enter"),),
    operators=(
        sj.Operator(name="enter", service_s=0.02, emits={"inner": 1}),
        sj.Operator(
            name="inner", service_s=0.03, route="one_of", emits={"inner": 0.3, "merge": 0.7}
        ),
        sj.Operator(name="merge", service_s=0.01, route="one_of", emits={"inner": 0.2}),
    ),
)


class Starting:
    """A simulator on a machine that is all busy with a start for the first seconds.

    Records compute for *computes* of their time, and take *slower* times as long meanwhile.
    """

    def __init__(self, simulator, *, warms, computes=0.01, slower=3.0, cores=2.0):
        self._simulator, self._warms, self._computes = simulator, warms, computes
        self._slower, self._cores = slower, cores
        self._began_s = simulator.now_s

    def __getattr__(self, name):
        return getattr(self._simulator, name)

    def observe(self, until_s):
        pull = self._simulator.observe(until_s)
        starting = until_s - self._began_s <= WARMS_S
        times = self._slower if starting else 1.0
        operators = tuple(
            replace(o, processors=tuple(self._computing(o, p, times) for p in o.processors))
            for o in pull.operators
        )
        computing = sum(p.cpu_s for o in operators for p in o.processors) / EVERY_S
        return replace(
            pull,
            operators=operators,
            cores=self._cores,
            busy_cores=self._cores if starting else min(self._cores, computing + 0.2),
            warming=self._warms and starting,
        )

    def _computing(self, operator, processor, times):
        cpu_s = self._computes * processor.served * NESTED.operator[operator.name].service_s
        return replace(
            processor,
            service_s=processor.service_s * times,
            service_ss=processor.service_ss * times**2,
            cpu_s=cpu_s,
        )


def works_off(waiting):
    """Return the processors that work off so many of each within the time that is given."""
    entering = {name: n / DRAIN_S for name, n in waiting.items()}
    entering["enter"] += NESTED.arrivals_per_s
    return {
        name: floor(per_s * NESTED.operator[name].service_s) + 1
        for name, per_s in rates(entering, NESTED.gains).items()
    }


def restarted(*, warms, guessed=1.0, lasts_s=60.0):
    """Return what waits after a time with too few processors, and what is then decided."""
    load = Rates.steps((0, 50), (FILLS_S, 30))
    with Simulator(workload=Workload(rates={"in": load}), seed=3, sample_every=1) as simulator:
        simulator.start(NESTED, Plan.here(dict.fromkeys(NESTED.operator, 1)))
        waiting = {o.name: o.backlog for o in simulator.observe(FILLS_S).operators}
        # nothing is known from before, and what is declared may be far off
        known = replace(
            NESTED,
            operators=tuple(
                replace(o, service_s=guessed * o.service_s) for o in NESTED.operators
            ),
        )
        policy = Drs(goal=Goal(target=Target("p95", 1.0)), drain_s=DRAIN_S)
        loop = Loop(Starting(simulator, warms=warms), known, policy, every_s=EVERY_S)
        return waiting, list(loop.run(FILLS_S + lasts_s))


@pytest.mark.parametrize("guessed", [0.1, 1.0, 3.0])
def test_a_backlog_gets_what_works_it_off_and_not_much_more(guessed):
    waiting, episodes = restarted(warms=True, guessed=guessed)
    assert sum(waiting.values()) > 1000
    needed = sum(works_off(waiting).values())
    asked = max(e.decision.after.processors for e in episodes)
    assert needed <= asked <= 1.5 * needed
    assert sum(o.backlog for o in episodes[-1].observation.operators.values()) < 50


def test_a_machine_that_others_keep_busy_makes_no_more_of_a_backlog():
    """An engine that does not tell of its start: records take three times as long there."""
    waiting, episodes = restarted(warms=False)
    asked = max(e.decision.after.processors for e in episodes)
    assert asked <= 3 * 1.5 * sum(works_off(waiting).values())


def test_nothing_is_decided_on_what_is_measured_while_it_starts():
    _, episodes = restarted(warms=True, lasts_s=12.0)
    starting, later = episodes[: int(WARMS_S)], episodes[int(WARMS_S)]
    assert {e.decision.kind for e in starting} == {"hold"}
    assert "has just started" in starting[-1].decision.reason
    assert later.decision.kind == "up"

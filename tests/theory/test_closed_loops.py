"""A thousand closed loops drawn at random: what must never happen does not.

Each is a topology, a load, a target or a number of processors, times of other shapes than
the model's, and faults in what is measured; see `closed_loops.py`.
"""

from dataclasses import replace

import pytest

from closed_loops import play
from sojourn.decide.plan import Plan
from sojourn.engine import Cost

BLOCK, DEFAULT, ALL = 10, 1, 100

blocks = [
    pytest.param(block, marks=[pytest.mark.slow] if block >= DEFAULT else [])
    for block in range(ALL)
]


@pytest.mark.parametrize("block", blocks)
def test_no_exception_no_unstable_allocation_kept_no_flapping(block):
    """10 runs by default, 1,000 with `make test-all`."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        run = play(seed)
        assert not list(run.kept_unstable())
        assert not list(run.flapped())


def test_the_judge_sees_an_unstable_allocation_that_is_kept():
    """Or the test above could not fail."""
    run = next(run for run in map(play, range(100)) if run.policy.goal.most is None)
    few = Plan.here(dict.fromkeys(run.topology.operator, 1))
    starved = [replace(e, decision=replace(e.decision, before=few)) for e in run.episodes]
    heavy = run.topology.scaled(20)
    assert list(
        replace(run, topology=heavy, load=run.load.times(20), episodes=starved).kept_unstable()
    )


def test_the_judge_sees_flapping():
    run = next(run for run in map(play, range(100)) if run.steady)
    name = next(iter(run.topology.operator))
    costs = [Cost(changed={name: (1, 2)}), Cost(changed={name: (2, 1)})]
    flapping = [replace(e, cost=c) for e, c in zip(run.episodes, costs, strict=False)]
    assert list(replace(run, episodes=flapping).flapped())

"""A thousand closed loops drawn at random: what must never happen does not.

Each is a topology, a load, a target or a number of processors, times of other shapes than
the model's, and faults in what is measured; see `closed_loops.py`.
"""

import pytest
from closed_loops import play

BLOCK, DEFAULT, ALL = 25, 4, 40

blocks = [
    pytest.param(block, marks=[pytest.mark.slow] if block >= DEFAULT else [])
    for block in range(ALL)
]


@pytest.mark.parametrize("block", blocks)
def test_no_exception_no_unstable_allocation_kept_no_flapping(block):
    """100 runs by default, 1,000 with `make test-all`."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        run = play(seed)
        assert not list(run.kept_unstable())
        assert not list(run.flapped())


def test_the_judge_sees_an_unstable_allocation_that_is_kept():
    """Or the test above could not fail."""
    run = next(run for run in map(play, range(100)) if run.policy.goal.most is None)
    starved = [
        type(e)(
            observation=e.observation,
            decision=type(e.decision)(
                at_s=e.decision.at_s,
                before=dict.fromkeys(e.decision.before, 1),
                after=dict.fromkeys(e.decision.before, 1),
                reason="starved",
            ),
        )
        for e in run.episodes
    ]
    judged = type(run)(
        seed=0,
        topology=run.topology.scaled(20),
        policy=run.policy,
        load=run.load.times(20),
        steady=run.steady,
        episodes=starved,
    )
    assert list(judged.kept_unstable())

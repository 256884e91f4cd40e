"""Plans against every allocation there is.

Each operator's wait is worked out once for every number of processors it could get; the
rest is adding up and looking for the smallest, which shares nothing with handing out by gain.
"""

from dataclasses import replace
from functools import cache
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sojourn.decide.assign import assign
from sojourn.decide.gains import least_allocation
from sojourn.decide.minimise import minimise
from sojourn.decide.target import Target
from sojourn.model.network import PERCENTILES, mean_s, predict, served_s, stations
from sojourn.model.station import names
from strategies import topologies

SPARE = 12

many = settings(max_examples=300, deadline=None)
very_many = settings(max_examples=10_000, deadline=None)
any_topology = given(
    topology=topologies(max_operators=5, keys=True),
    spare=st.integers(0, SPARE),
    between=st.floats(0.001, 0.999),
)


def small_topology(*, loops):
    return given(
        topology=topologies(max_operators=3, loops=loops, keys=True),
        statistic=st.sampled_from(list(PERCENTILES)),
        given_away=st.tuples(*[st.integers(0, 2)] * 3),
        slack=st.sampled_from([1.0, 1.01, 1.1]),
    )


@cache
def ways(operators, spare):
    """Return every way to hand up to *spare* processors to *operators*, one per row."""
    every = product(range(spare + 1), repeat=operators)
    return np.array([way for way in every if sum(way) <= spare])


def best_means_s(topology, model):
    """Return the least mean that 0, 1, 2 … spare processors can reach, inf where they cannot.

    They cannot where operators may not have so many.
    """
    added_s = np.full((len(topology.operators), SPARE + 1), inf)
    models, least = stations(topology, model), least_allocation(topology)
    for row, operator in zip(added_s, topology.operators, strict=True):
        for further in range(SPARE + 1):
            processors = least[operator.name] + further
            if processors <= (operator.most_processors or inf):
                load = topology.loads[operator.name]
                wait_s = models[operator.name].wait_s(load, processors)
                row[further] = topology.visits[operator.name] * wait_s
    rows = ways(len(added_s), SPARE)
    means_s = served_s(topology) + sum(
        row[further] for row, further in zip(added_s, rows.T, strict=True)
    )
    best_s = np.full(SPARE + 1, inf)
    np.minimum.at(best_s, rows.sum(axis=1), means_s)
    return best_s


def check_the_mean_is_the_least(topology, spare, between):
    least = sum(least_allocation(topology).values())
    for model in names():
        best_s = best_means_s(topology, model)
        allowed = np.flatnonzero(best_s < inf)[-1]  # the rest are left over
        plan = assign(topology, least + spare, model=model)
        assert plan.processors == least + min(spare, allowed)
        assert plan.mean_s == pytest.approx(best_s[min(spare, allowed)], rel=1e-12)
        assert plan.mean_s == pytest.approx(
            mean_s(topology, plan.allocation, model=model), rel=1e-12
        )
        check_no_fewer_do(topology, model, best_s[: allowed + 1], between)


def check_no_fewer_do(topology, model, best_s, between):
    """Ask for a mean somewhere *between* the worst and the best."""
    target_s = best_s[0] + (best_s[-1] - best_s[0]) * between
    target_s *= 1 + 1e-11  # clear of the floor, where only rounding could meet it
    if target_s == 0:
        return
    plan = minimise(topology, Target("mean", target_s), model=model)
    assert plan.processors == plan.least
    spare = plan.processors - sum(least_allocation(topology).values())
    # means that differ in the last digit alone may round either way
    assert best_s[spare] <= target_s * (1 + 1e-12)
    assert spare == 0 or best_s[spare - 1] > target_s * (1 - 1e-12)
    assert plan.mean_s == pytest.approx(best_s[spare], rel=1e-12)


@any_topology
@many
def test_no_allocation_has_a_smaller_mean_and_no_fewer_processors_meet_one(
    topology, spare, between
):
    check_the_mean_is_the_least(topology, spare, between)


@pytest.mark.slow
@any_topology
@very_many
def test_no_allocation_of_ten_thousand_topologies_has_a_smaller_mean(topology, spare, between):
    check_the_mean_is_the_least(topology, spare, between)


def within(topology, processors):
    """Yield every allocation of at most *processors*, the fewest first."""
    least = least_allocation(topology)
    rows = ways(len(least), max(0, processors - sum(least.values())))
    for row in rows[np.argsort(rows.sum(axis=1), kind="stable")]:
        allocation = {n: k + int(more) for (n, k), more in zip(least.items(), row, strict=True)}
        if all(allocation[o.name] <= (o.max_processors or inf) for o in topology.operators):
            yield allocation


def smoothed(topology):
    """Return *topology* with nothing in it that always takes the same time, or none."""
    operators = tuple(
        replace(
            operator,
            service_s=operator.service_s or 0.5 / (topology.rates[operator.name] or 1.0),
            service_scv=max(operator.service_scv, 0.25),
            transfer_s=0.0,
        )
        for operator in topology.operators
    )
    return replace(topology, operators=operators)


def check_no_fewer_meet_a_percentile(topology, statistic, given_away, slack, *, grain):
    """Ask for what some allocation reaches, or a little more.

    What comes closer to the target than *grain* of all times is left undecided: percentiles
    are read off lattices, whose points tell when much takes exactly as long as the target.
    """
    asked = {
        operator.name: min(k + more, operator.most_processors or inf)
        for operator, k, more in zip(
            topology.operators, least_allocation(topology).values(), given_away, strict=False
        )
    }
    # all but full, an operator takes longer than all digits of a percentile can tell
    assume(all(at.erlangs < at.min_processors * (1 - 1e-6) for at in topology.loads.values()))
    predicted = predict(topology, asked)
    assume(predicted.mean_s > 0)
    margin_s = grain * (predicted.mean_s + predicted.std_s)
    target = Target(statistic, slack * predicted.percentiles_s[statistic] + margin_s)
    plan = minimise(topology, target)
    perhaps = sure = None
    for allocation in within(topology, sum(asked.values())):
        reached_s = predict(topology, allocation).percentiles_s[statistic]
        if perhaps is None and reached_s <= target.seconds + margin_s:
            perhaps = sum(allocation.values())
        if reached_s <= target.seconds - 0.999 * margin_s:
            sure = sum(allocation.values())
            break
    assert plan.least <= sure
    assert perhaps <= plan.processors
    if plan.least == plan.processors:
        assert plan.processors <= sure


@small_topology(loops=False)
@settings(max_examples=60, deadline=None)
def test_no_fewer_processors_meet_a_percentile(topology, statistic, given_away, slack):
    check_no_fewer_meet_a_percentile(
        smoothed(topology), statistic, given_away, slack, grain=1e-4
    )


@small_topology(loops=True)
@settings(max_examples=12, deadline=None)
def test_no_fewer_processors_meet_a_percentile_where_records_come_back(
    topology, statistic, given_away, slack
):
    check_no_fewer_meet_a_percentile(
        smoothed(topology), statistic, given_away, slack, grain=1e-4
    )


@small_topology(loops=False)
@settings(max_examples=75, deadline=None)
def test_times_that_are_always_the_same_blur_a_percentile_but_little(
    topology, statistic, given_away, slack
):
    check_no_fewer_meet_a_percentile(topology, statistic, given_away, slack, grain=0.02)


@pytest.mark.slow
@small_topology(loops=True)
@settings(max_examples=1_000, deadline=None)
def test_no_fewer_processors_meet_a_percentile_of_a_thousand_topologies(
    topology, statistic, given_away, slack
):
    check_no_fewer_meet_a_percentile(
        smoothed(topology), statistic, given_away, slack, grain=1e-4
    )
    check_no_fewer_meet_a_percentile(topology, statistic, given_away, slack, grain=0.02)

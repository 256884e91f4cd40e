"""Node-hours whatever the clock does, and whenever nodes come and go."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import BadInput
from sojourn.measure.node_costs import Bill, NodeTime, check_price

NAMES = st.sets(st.sampled_from("abcd"))
STEPS = st.lists(st.tuples(st.integers(0, 100), NAMES), min_size=1, max_size=20)


def seen(steps):
    time, at_s = NodeTime(), 0
    for lasted_s, nodes in steps:
        at_s += lasted_s
        time = time.saw(at_s, nodes)
    return time, at_s


@given(STEPS)
def test_each_node_is_paid_from_its_coming_to_its_going(steps):
    time, _ = seen(steps)
    each = dict.fromkeys("abcd", 0)
    for (_, nodes), (lasted_s, _) in pairwise(steps):
        for node in nodes:
            each[node] += lasted_s
    assert time.total_s == sum(each.values())


@given(STEPS)
def test_looking_more_often_changes_nothing(steps):
    once, at_s = seen(steps)
    between = [(0, frozenset()), *steps]
    often, _ = seen(
        [
            half
            for (_, before), (lasted_s, nodes) in pairwise(between)
            for half in ((lasted_s / 2, before), (lasted_s / 2, nodes))
        ]
    )
    assert often.total_s == once.total_s
    assert once.until(at_s + 10) == once.total_s + 10 * len(once.nodes)


def test_a_clock_that_is_set_back_costs_and_refunds_nothing():
    time = NodeTime().saw(1000.0, ["a"]).saw(1010.0, ["a"])
    back = time.saw(10.0, ["a"])
    assert back.total_s == time.total_s == 10.0
    assert back.saw(15.0, ["a"]).total_s == 15.0
    assert time.until(0.0) == 10.0


def test_a_gap_is_paid_because_nodes_were_there_meanwhile():
    assert NodeTime().saw(0.0, ["a", "b"]).saw(7200.0, []).total_s == 14400.0


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(BadInput, match="per hour is not possible; write 0 or more"):
        check_price(price)


def test_what_is_free_costs_nothing():
    check_price(0.0)
    assert Bill.of(3600.0, 0.0).cost == 0.0

"""What is learned of nodes that come and go, in any order and on any clock."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import BadInput
from sojourn.measure.node_costs import Bill, NodeCosts, NodeMoves, NodeTime, check_price


def begun():
    moves = NodeMoves()
    moves.saw(0.0, there=["a"], settled=["a"])
    return moves


def test_nodes_that_are_there_at_the_start_teach_nothing():
    moves = NodeMoves()
    moves.asked(0.0, 1)
    moves.saw(5.0, there=["a", "b"], settled=["a", "b"])
    assert moves.costs == NodeCosts()


def test_a_node_has_come_when_its_processors_run_not_when_it_is_there():
    moves = begun()
    moves.asked(10.0, 2)
    moves.saw(12.0, there=["a", "b", "c"], settled=["a", "c"])
    assert moves.costs.adding_s == 2.0
    moves.saw(16.0, there=["a", "b", "c"], settled=["a", "b", "c"])
    assert moves.costs.adding_s == 4.0  # of 2 s and 6 s


def test_a_node_that_nobody_asked_for_teaches_nothing():
    moves = begun()
    moves.saw(5.0, there=["b"], settled=["b"])  # Spark has replaced one that died
    assert moves.costs == NodeCosts()


def test_a_node_that_goes_before_its_processors_run_teaches_nothing():
    moves = begun()
    moves.asked(1.0, 1)
    moves.saw(2.0, there=["a", "b"], settled=["a"])
    moves.saw(3.0, there=["a"], settled=["a"])
    moves.saw(9.0, there=["a", "c"], settled=["a", "c"])
    assert moves.costs.adding_s is None


def test_the_last_moves_count_and_one_that_took_long_does_not_decide():
    moves = begun()
    for n, took_s in enumerate([100.0, 3.0, 4.0, 60.0, 5.0, 2.0]):
        at_s = 1000.0 * (n + 1)
        moves.asked(at_s, 1)
        moves.saw(at_s + took_s, there=["a", f"n{n}"], settled=["a", f"n{n}"])
        moves.released(at_s + 500.0, f"n{n}")
        moves.released(at_s + 500.5, f"n{n}")  # decided once
        moves.saw(at_s + 501.0, there=["a"], settled=["a"])
    assert moves.costs == NodeCosts(adding_s=4.0, removing_s=1.0)


def test_a_clock_that_is_set_back_teaches_nothing():
    moves = begun()
    moves.asked(100.0, 1)
    moves.released(100.0, "a")
    moves.saw(1.0, there=["b"], settled=["b"])
    assert moves.costs == NodeCosts()


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

import pickle
from dataclasses import replace

import numpy as np
import pytest

from sojourn.decide.plan import Expected, Plan, here
from sojourn.errors import BadAllocation

TWO = Plan(placement={"a": {"one": 2, "two": 1}, "b": {"two": 4}})
ALL_ON_ONE = {"a": {"one": 3}, "b": {"one": 4}}


def test_the_allocation_is_what_all_nodes_have_together():
    assert TWO.allocation == {"a": 3, "b": 4}
    assert (TWO.processors, str(TWO)) == (7, "3:4")


def test_nothing_is_refused_unless_it_is_said():
    assert TWO.admission == {}
    assert Plan(placement={}, admission={"in": 0.5}).admission == {"in": 0.5}


def test_before_anything_runs_there_is_a_plan_too():
    assert Plan(placement={}).processors == 0


def test_a_node_without_processors_is_not_part_of_a_plan():
    assert Plan(placement={"a": {"one": 2, "two": 0}}) == Plan(placement={"a": {"one": 2}})


def test_plans_are_equal_where_the_same_is_to_run():
    expected = Expected(statistic="mean", seconds=1.0, arrivals_per_s=2.0)
    assert replace(TWO, reason="too slow", expected=expected) == TWO
    assert replace(TWO, placement=ALL_ON_ONE) != TWO
    assert replace(TWO, admission={"in": 0.5}) != TWO


def test_numbers_may_have_been_counted_with_numpy():
    plan = Plan.here({"a": np.int64(3)})
    assert [type(k) for k in (*plan.allocation.values(), *plan.placement["a"].values())] == [
        int,
        int,
    ]


def test_plans_travel_between_processes():
    told = replace(TWO, reason="too slow")
    back = pickle.loads(pickle.dumps(told))
    assert (back, back.reason, back.allocation) == (told, told.reason, told.allocation)


@pytest.mark.parametrize("processors", [-1, 1.5, True, "3", None, float("nan")])
def test_what_is_no_number_of_processors_is_refused(processors):
    with pytest.raises(
        BadAllocation, match=r"a: .* is not a valid number of processors on one; write 0"
    ):
        Plan(placement={"a": {"one": processors}})


@pytest.mark.parametrize("on", [{}, {"one": 0}, {"one": 0, "two": 0}])
def test_every_operator_has_a_processor_somewhere(on):
    with pytest.raises(BadAllocation, match="a has no processor; give it 1 or more"):
        Plan(placement={"a": on})


@pytest.mark.parametrize("part", [-0.1, 1.1, float("nan")])
def test_what_is_let_in_is_a_part_of_all(part):
    with pytest.raises(
        BadAllocation, match=r"admission of in is .*; write a number from 0 to 1"
    ):
        Plan(placement={}, admission={"in": part})


def test_a_change_is_what_operators_have_before_and_after():
    assert TWO.changes(Plan.here({"a": 5, "b": 4})) == {"a": (3, 5)}
    assert TWO.changes(TWO) == {}


def test_here_is_one_machine():
    assert here({"a": 3}) == {"a": {"here": 3}}

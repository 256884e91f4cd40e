import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.decide.solution import NodeSize, Solution
from sojourn.errors import BadTarget


def test_the_processors_of_a_solution_are_those_of_its_operators():
    solution = Solution(
        name="vld", model="mmk", allocation={"a": 3, "b": 4}, mean_s=1.0, reason="", least=7
    )
    assert solution.processors == 7


def test_four_and_five_machines_of_five_slots_have_seventeen_and_twenty_two():
    machines = NodeSize(slots=5, reserved=3)
    assert [machines.processors(nodes) for nodes in (4, 5)] == [17, 22]


@given(slots=st.integers(1, 64), reserved=st.integers(0, 200), processors=st.integers(1, 500))
def test_machines_hold_what_they_are_said_to_hold(slots, reserved, processors):
    machines = NodeSize(slots=slots, reserved=reserved)
    enough = machines.holding(processors)
    assert machines.processors(enough) >= processors > machines.processors(enough - 1)
    within = machines.within(processors)
    assert machines.processors(within) <= processors < machines.processors(within + 1)


def test_machines_whose_slots_are_all_reserved_have_no_processors():
    assert NodeSize(slots=5, reserved=12).processors(2) == 0


@pytest.mark.parametrize(("slots", "reserved"), [(0, 0), (-1, 0), (5, -1)])
def test_machines_that_cannot_be_are_refused(slots, reserved):
    with pytest.raises(BadTarget, match=f"{slots} slots per node with {reserved} reserved"):
        NodeSize(slots=slots, reserved=reserved)

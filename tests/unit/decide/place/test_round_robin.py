import pytest

from sojourn.decide.place.round_robin import place
from sojourn.decide.plan import Node
from sojourn.errors import BadAllocation

THREE = [Node("one"), Node("two"), Node("three")]


def test_each_node_has_its_share_and_those_with_one_processor_are_apart():
    assert place({"a": 7, "b": 1, "c": 1}, THREE) == {
        "a": {"one": 3, "two": 2, "three": 2},
        "b": {"two": 1},
        "c": {"three": 1},
    }


def test_more_processors_of_one_operator_move_no_others():
    before, after = place({"a": 2, "b": 4}, THREE), place({"a": 5, "b": 4}, THREE)
    assert before["b"] == after["b"]
    assert all(after["a"][node] >= k for node, k in before["a"].items())


def test_without_a_node_it_says_for_how_many_processors():
    with pytest.raises(BadAllocation, match="there is no node for 5 processors; start one"):
        place({"a": 2, "b": 3}, [])

import pytest

from sojourn.decide.place.one_node import place
from sojourn.decide.plan import Node
from sojourn.errors import BadAllocation


def test_all_processors_are_on_the_first_node():
    there = [Node("one", cores=2), Node("two", cores=64)]
    assert place({"a": 5, "b": 1}, there) == {"a": {"one": 5}, "b": {"one": 1}}


def test_without_a_node_it_says_for_how_many_processors_and_the_way_out():
    with pytest.raises(BadAllocation, match="there is no node for 5 processors; start one"):
        place({"a": 2, "b": 3}, [])

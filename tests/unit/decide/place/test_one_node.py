from sojourn.decide.place.one_node import place
from sojourn.plan import Node


def test_all_processors_are_on_the_first_node():
    there = [Node("one", cores=2), Node("two", cores=64)]
    assert place({"a": 5, "b": 1}, there) == {"a": {"one": 5}, "b": {"one": 1}}

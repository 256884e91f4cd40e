from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.place.one_node import place
from sojourn.decide.plan import Node


def test_all_processors_are_on_the_first_node():
    there = [Node("one", cores=2), Node("two", cores=64)]
    request = PlacementRequest(allocation={"a": 5, "b": 1}, nodes=there)
    assert place(request) == {"a": {"one": 5}, "b": {"one": 1}}

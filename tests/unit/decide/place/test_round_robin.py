from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.place.round_robin import place
from sojourn.decide.plan import Node

THREE = [Node("one"), Node("two"), Node("three")]


def on_three(**allocation):
    return place(PlacementRequest(allocation=allocation, nodes=THREE))


def test_each_node_has_its_share_and_those_with_one_processor_are_apart():
    assert on_three(a=7, b=1, c=1) == {
        "a": {"one": 3, "two": 2, "three": 2},
        "b": {"two": 1},
        "c": {"three": 1},
    }


def test_more_processors_of_one_operator_move_no_others():
    before, after = on_three(a=2, b=4), on_three(a=5, b=4)
    assert before["b"] == after["b"]
    assert all(after["a"][node] >= k for node, k in before["a"].items())

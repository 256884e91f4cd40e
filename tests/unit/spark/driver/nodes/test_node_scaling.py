"""When nodes are asked for and given back."""

from dataclasses import replace

import pytest

from sojourn.errors import BadInput
from sojourn.measure.node_costs import NodeCosts
from sojourn.spark.driver.nodes.node_scaling import AskFor, NodeBounds, NodeScaling, Release

BOUNDS = NodeBounds(least=1, most=3, processors=4)


def test_no_more_are_asked_for_than_may_be_and_none_twice():
    scaling = NodeScaling(BOUNDS)
    assert scaling.step(0.0, 100, ["a"], wanted=1) == AskFor(3)
    assert scaling.step(1.0, 100, ["a"], wanted=3) is None


def test_fewer_have_to_do_for_a_while_before_one_goes():
    scaling = NodeScaling(replace(BOUNDS, calm_s=10.0))
    nodes = ["a", "b", "c"]
    assert scaling.step(0.0, 4, nodes, wanted=3) is None
    assert scaling.step(9.0, 12, nodes, wanted=3) is None  # all are needed: it begins anew
    assert scaling.step(10.0, 4, nodes, wanted=3) is None
    assert scaling.step(20.0, 4, nodes, wanted=3) == Release("c")
    assert scaling.step(21.0, 4, ["a", "b"], wanted=2) is None  # one at a time
    assert scaling.step(30.0, 4, ["a", "b"], wanted=2) == Release("b")
    assert scaling.step(100.0, 1, ["a"], wanted=1) is None


def test_a_node_that_takes_long_to_come_is_not_asked_for_a_moment():
    scaling, slow = NodeScaling(BOUNDS), NodeCosts(adding_s=180.0)
    assert scaling.step(0.0, 8, ["a"], wanted=1, costs=slow) is None
    assert scaling.step(8.0, 4, ["a"], wanted=1, costs=slow) is None  # it was a moment
    assert scaling.step(10.0, 8, ["a"], wanted=1, costs=slow) is None
    assert scaling.step(18.5, 8, ["a"], wanted=1, costs=slow) is None
    assert scaling.step(19.0, 8, ["a"], wanted=1, costs=slow) == AskFor(2)
    # if that was refused, there is no second wait
    assert scaling.step(19.5, 8, ["a"], wanted=1, costs=slow) == AskFor(2)


def test_a_node_that_would_take_long_to_come_back_is_kept_longer():
    scaling = NodeScaling(BOUNDS)
    costs = NodeCosts(adding_s=4.8, removing_s=1.1)  # 4.8 s / 0.05 + 1.1 s
    steps = {
        at_s: scaling.step(at_s, 4, ["a", "b"], wanted=2, costs=costs)
        for at_s in (0.0, 60.0, 97.0, 97.2)
    }
    assert [at_s for at_s, step in steps.items() if step] == [97.2]


def test_none_goes_while_others_are_still_coming():
    scaling = NodeScaling(replace(BOUNDS, calm_s=0.0))
    assert scaling.step(0.0, 4, ["a", "b"], wanted=3) is None


def test_without_a_most_nodes_are_what_they_are():
    scaling = NodeScaling(NodeBounds(processors=4, calm_s=0.0))
    assert scaling.step(0.0, 100, ["a"], wanted=1) is None
    assert scaling.step(0.0, 1, ["a", "b"], wanted=2) is None


@pytest.mark.parametrize(
    "given", [{"least": 0}, {"processors": 0}, {"least": 3, "most": 2}, {"calm_s": -1.0}]
)
def test_bounds_that_cannot_be_are_refused(given):
    with pytest.raises(BadInput, match=r"write \d or more"):
        NodeBounds(**given)

"""What every placer in the folder has to hold, so that the loop may use any of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.decide.place import names, placer
from sojourn.decide.plan import Node, Plan
from sojourn.errors import BadAllocation, BadInput, UnknownName

allocations = st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 500), max_size=8)
nodes = st.lists(
    st.builds(Node, st.text(min_size=1, max_size=5), st.none() | st.floats(0.5, 256)),
    min_size=1,
    max_size=6,
    unique_by=lambda node: node.name,
)

every_placer = pytest.mark.parametrize("name", names())


@every_placer
@given(allocation=allocations, there=nodes)
def test_every_processor_is_placed_once_on_a_node_that_there_is(name, allocation, there):
    placement = placer(name)(allocation, there)
    assert list(placement) == list(allocation)
    assert Plan(placement=placement).allocation == allocation
    assert {node for on in placement.values() for node in on} <= {node.name for node in there}


@every_placer
@given(allocation=allocations, there=nodes)
def test_the_same_input_has_the_same_answer(name, allocation, there):
    place = placer(name)
    assert place(allocation, there) == place(dict(allocation), tuple(there))


@every_placer
def test_without_nodes_there_is_nowhere_to_place_anything(name):
    with pytest.raises(BadAllocation, match="no node"):
        placer(name)({"a": 2, "b": 3}, [])


def test_a_placer_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(
        UnknownName, match="unknown placer 'base'; write one of one_node, round_robin"
    ):
        placer("base")


def test_one_from_outside_is_a_module_or_a_function():
    assert placer("sojourn.decide.place.one_node") is placer("one_node")
    assert placer("sojourn.decide.place.one_node:place") is placer("one_node")
    with pytest.raises(BadInput, match=r"sojourn\.errors is no placer; name a function"):
        placer("sojourn.errors")

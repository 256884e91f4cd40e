"""What every placer in the folder has to hold, so that the loop may use any of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.decide.place import PlacementRequest, names, placer
from sojourn.decide.plan import Node, Plan
from sojourn.errors import BadInput

operators = st.text(min_size=1, max_size=5)
amounts = st.floats(0, 1e6)


@st.composite
def requests(draw):
    """Return a request with any measurements, while processors are anywhere."""
    node_names = draw(st.lists(operators, min_size=1, max_size=6, unique=True))
    allocation = draw(st.dictionaries(operators, st.integers(1, 500), min_size=1, max_size=8))
    placed = st.sampled_from([*allocation])
    before = st.dictionaries(st.sampled_from([*node_names, "gone"]), st.integers(1, 9))
    return PlacementRequest(
        allocation=allocation,
        nodes=[
            Node(
                name,
                cores=draw(st.none() | st.floats(0.5, 256)),
                memory_bytes=draw(st.none() | st.integers(1, 2**40)),
                price_per_hour=draw(st.none() | amounts),
            )
            for name in node_names
        ],
        demands=draw(st.dictionaries(placed, amounts)),
        flows=draw(st.dictionaries(st.tuples(placed, placed), amounts, max_size=8)),
        placement=draw(st.dictionaries(placed, before)),
    )


every_placer = pytest.mark.parametrize("name", names())


@every_placer
@given(request=requests())
def test_every_processor_is_placed_once_on_a_node_that_there_is(name, request):
    placement = placer(name)(request)
    assert list(placement) == list(request.allocation)
    assert Plan(placement=placement).allocation == request.allocation
    there = {node.name for node in request.nodes}
    assert {node for on in placement.values() for node in on} <= there


@every_placer
@given(request=requests())
def test_the_same_request_has_the_same_answer(name, request):
    place = placer(name)
    again = replace(request, allocation=dict(request.allocation), nodes=tuple(request.nodes))
    assert place(request) == place(again)


@every_placer
@given(request=requests())
def test_processors_that_are_where_it_wants_them_stay(name, request):
    """It is asked at every turn, and each move starts one process and ends another."""
    place = placer(name)
    placement = place(request)
    assert place(replace(request, placement=placement)) == placement


def test_a_placer_that_does_not_exist_is_named_with_those_that_do():
    known = ", ".join(names())
    with pytest.raises(BadInput, match=f"unknown placer 'base'; write one of {known}"):
        placer("base")


def test_one_from_outside_is_a_module_or_a_function():
    assert placer("sojourn.decide.place.one_node") is placer("one_node")
    assert placer("sojourn.decide.place.one_node:place") is placer("one_node")
    with pytest.raises(BadInput, match=r"sojourn\.errors is not a placer; name a function"):
        placer("sojourn.errors")

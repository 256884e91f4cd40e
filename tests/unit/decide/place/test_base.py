"""The request that placers answer."""

import pytest

import sojourn as sj
from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.plan import Node

SHOP = sj.Topology(
    name="shop",
    arrivals=(sj.Arrival(name="in", per_s=50, into="parse"),),
    operators=(
        sj.Operator(name="parse", service_s=0.03, cpu_s=0.02, emits={"score": 2, "drop": 0}),
        sj.Operator(name="score", service_s=0.01, speed=2.0, cpu_s=0.01, emits={"total": 1}),
        sj.Operator(name="drop", service_s=0.01),
        sj.Operator(name="total", service_s=0.01),
    ),
)


def test_it_has_what_was_measured_of_the_operators_that_are_placed():
    allocation = {"parse": 3, "score": 2, "drop": 1}
    now = {"parse": {"one": 3}}
    request = PlacementRequest.of(SHOP, allocation, [Node("one")], now)
    assert request.demands == pytest.approx({"parse": 1.0, "score": 0.5})
    assert request.flows == pytest.approx({("parse", "score"): 100.0})
    assert (request.allocation, request.placement) == (allocation, now)

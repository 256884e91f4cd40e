from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.decide.gains import Gains, least_allocation
from sojourn.errors import BoundTooLow
from sojourn.model.network import mean_s, served_s, stations
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies


def side_by_side(*operators, per_s=6.0):
    """Roots are dealt out evenly among operators that have nothing to do with each other."""
    share = 1 / len(operators)
    arrival = Arrival(name="roots", per_s=per_s, into={o.name: share for o in operators})
    return Topology(name="drawn", arrivals=(arrival,), operators=operators)


def gains(topology, **options):
    return Gains(topology, stations(topology, "mmk"), **options)


TWO = side_by_side(Operator(name="a", service_s=1.0), Operator(name="b", service_s=0.5))


def test_the_least_is_what_keeps_up_or_what_an_operator_must_have():
    topology = side_by_side(
        Operator(name="a", service_s=1.0),
        Operator(name="b", service_s=0.5, min_processors=7),
        Operator(name="c", service_s=1.0, min_processors=2),
    )
    assert least_allocation(topology) == {"a": 3, "b": 7, "c": 3}


def test_an_operator_that_may_not_keep_up_is_named():
    bounded = side_by_side(Operator(name="a", service_s=1.0, max_processors=6))
    with pytest.raises(BoundTooLow, match="a: max_processors is 6, but 7 are needed") as no:
        least_allocation(bounded)
    assert (no.value.operator, no.value.most, no.value.needed) == ("a", 6, 7)
    with pytest.raises(BoundTooLow):
        gains(bounded)


def test_at_first_everybody_keeps_up_and_that_is_all():
    growing = gains(TWO)
    assert growing.allocation == {"a": 4, "b": 2}
    assert growing.processors == 6


def test_a_processor_goes_where_it_shortens_the_mean_the_most():
    growing = gains(TWO)
    before_s = growing.wait_s
    (taker,) = growing.hand_out(1)
    others = [{"a": 5, "b": 2}, {"a": 4, "b": 3}]
    reached_s = [mean_s(TWO, other, model="mmk") for other in others]
    assert growing.allocation == others[taker]
    assert reached_s[taker] == min(reached_s)
    assert growing.wait_s < before_s
    assert growing.wait_s == pytest.approx(min(reached_s) - served_s(TWO))


@given(topology=topologies(keys=True), one=st.integers(0, 9), other=st.integers(0, 9))
@settings(deadline=None)
def test_handing_out_twice_is_handing_out_all_at_once(topology, one, other):
    twice, once = gains(topology), gains(topology)
    first, second, both = (
        growing.hand_out(processors, until_wait_s=0.0)
        for growing, processors in ((twice, one), (twice, other), (once, one + other))
    )
    assert first + second == both
    assert twice.allocation == once.allocation
    assert twice.processors == once.processors == sum(once.allocation.values())


@given(topology=topologies(keys=True), spare=st.integers(0, 30))
@settings(deadline=None)
def test_nobody_gets_fewer_than_they_must_or_more_than_they_may(topology, spare):
    growing = gains(topology)
    least = growing.allocation
    given = growing.hand_out(spare)
    names = [operator.name for operator in topology.operators]
    for i, operator in enumerate(topology.operators):
        held = growing.allocation[operator.name]
        assert held == least[names[i]] + given.count(i)
        assert operator.min_processors <= held
        assert operator.max_processors is None or held <= operator.max_processors
    if len(given) < spare:
        assert growing.allocation == {o.name: o.most_processors for o in topology.operators}


@given(topology=topologies(keys=True), spare=st.integers(0, 30))
@settings(deadline=None)
def test_the_wait_is_that_of_the_allocation(topology, spare):
    growing = gains(topology)
    growing.hand_out(spare)
    exact_s = mean_s(topology, growing.allocation, model="mmk") - served_s(topology)
    # the floor hides the last digits of the wait
    assert growing.wait_s == pytest.approx(exact_s, rel=1e-9, abs=1e-12 * served_s(topology))


def test_it_stops_once_the_wait_is_short_enough():
    growing, reference = gains(TWO), gains(TWO)
    while reference.wait_s > 0.01:
        reference.hand_out(1)
    growing.hand_out(1_000, until_wait_s=0.01)
    assert growing.allocation == reference.allocation


def test_nothing_is_handed_out_where_the_wait_is_short_enough_already():
    assert gains(TWO).hand_out(5, until_wait_s=100.0) == []


def test_it_starts_where_it_is_told_to():
    growing = gains(TWO, start={"a": 10, "b": 2})
    assert growing.processors == 12
    assert growing.hand_out(1) == [1]
    assert growing.allocation == {"a": 10, "b": 3}


def test_with_everybody_at_the_most_they_may_have_the_rest_is_kept():
    bounded = side_by_side(
        Operator(name="a", service_s=1.0, max_processors=5),
        Operator(name="b", service_s=0.5, max_processors=2),
    )
    growing = gains(bounded)
    assert growing.hand_out(10) == [0]
    assert growing.hand_out(10) == []
    assert growing.allocation == {"a": 5, "b": 2}


def test_processors_that_shorten_nothing_go_round_in_turn():
    idle = side_by_side(
        Operator(name="a", service_s=0.0),
        Operator(name="b", service_s=0.0, max_processors=2),
        Operator(name="c", service_s=0.0),
    )
    growing = gains(idle)
    assert growing.hand_out(6) == [0, 1, 2, 0, 2, 0]
    assert growing.allocation == {"a": 4, "b": 2, "c": 3}
    assert growing.processors == 9


def test_processors_that_shorten_nothing_are_left_when_nobody_may_have_them():
    idle = side_by_side(Operator(name="a", service_s=0.0, max_processors=3))
    growing = gains(idle)
    assert growing.hand_out(10) == [0, 0]
    assert growing.hand_out(10) == []


def test_processors_that_shorten_nothing_are_kept_when_a_wait_is_to_be_shortened():
    """A target that nothing brings closer is not chased with all processors in the world."""
    stuck = side_by_side(
        Operator(name="a", service_s=1.0, max_processors=4), Operator(name="b", service_s=0.0)
    )
    growing = gains(stuck)
    assert growing.hand_out(1_000, until_wait_s=0.0) == []
    assert growing.wait_s > 0
    assert growing.hand_out(2) == [1, 1]


@pytest.mark.parametrize("short", [1e-3, 1e-6, 1e-9, 1e-12, 1e-14])
def test_a_wait_that_falls_from_all_but_forever_keeps_its_digits(short):
    """Subtracted one by one from a huge sum, gains would leave an error of seconds."""
    nearly_full = side_by_side(Operator(name="a", service_s=1.0), per_s=3 - short)
    for until_s in (0.1, 1e-3, 1e-6, 1e-9):
        growing = gains(nearly_full)
        growing.hand_out(1_000, until_wait_s=until_s)
        waits_s = stations(nearly_full, "mmk")["a"].waits_s(nearly_full.loads["a"], 3)
        needed = next(k for k, wait_s in enumerate(waits_s, 3) if wait_s <= until_s)
        assert growing.processors == needed


def test_each_processor_takes_one_step_of_a_recursion():
    stepped = []

    class Counting:
        @staticmethod
        def waits_s(load, first):
            for wait_s in stations(TWO, "mmk")["a"].waits_s(load, first):
                stepped.append(load)
                yield wait_s

    growing = Gains(TWO, {"a": Counting, "b": Counting})
    growing.hand_out(100)
    assert len(stepped) == 100 + 2 * 2  # where each operator stands, and its next gain


def test_the_order_is_that_of_the_gains():
    growing = gains(TWO)
    order = growing.hand_out(40)
    visited = {}
    for i, (name, k) in enumerate({"a": 4, "b": 2}.items()):
        waits = stations(TWO, "mmk")[name].waits_s(TWO.loads[name], k)
        waits_s = list(islice(waits, 41))
        visited[i] = [(one - two) / 2 for one, two in pairwise(waits_s)]
    taken = [visited[i].pop(0) for i in order]
    assert taken == sorted(taken, reverse=True)

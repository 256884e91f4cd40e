"""Births by producers' clocks, beside when Kafka had the records."""

import pytest

from sojourn.measure.clocks import ProducerClocks


def told(clocks, lags, source="orders"):
    for number, lag_s in enumerate(lags):
        clocks.told(source, number - lag_s, (number - 0.1, number + 0.1))


@pytest.mark.parametrize("lag_s", [-0.2, 0.0, 0.24])
def test_what_may_be_the_way_to_kafka_is_no_clock_that_is_off(lag_s):
    clocks = ProducerClocks()
    told(clocks, [lag_s] * 100)
    assert clocks.behind_s("orders") == 0
    assert clocks.birth_s("orders", 7.0, (8.0, 8.2)) == 7.0
    assert clocks.texts() == ()


def test_few_records_that_came_late_are_no_clock_that_is_off():
    """A producer that was away sends what it kept; most came at once."""
    clocks = ProducerClocks()
    told(clocks, [0.05] * 60 + [30.0] * 40)
    assert clocks.behind_s("orders") == 0
    assert clocks.birth_s("orders", 7.0, (37.0, 37.2)) == 7.0


def test_each_source_has_clocks_of_its_own():
    clocks = ProducerClocks()
    told(clocks, [3.0] * 30)
    told(clocks, [-2.0] * 30, "returns")
    assert clocks.birth_s("orders", 7.0, None) == pytest.approx(10.0)
    assert clocks.birth_s("returns", 7.0, None) == pytest.approx(5.0)
    assert clocks.birth_s("tips", 7.0, (20.0, 20.2)) == 7.0
    assert [text.split(";")[0] for text in clocks.texts()] == [
        "clocks of producers of orders are about 3 s behind, or they send late",
        "clocks of producers of returns are about 2 s ahead",
    ]


def test_clocks_that_are_set_right_are_believed_again():
    clocks = ProducerClocks()
    told(clocks, [3.0] * 100)
    told(clocks, [0.05] * 500)
    assert clocks.texts() == ()

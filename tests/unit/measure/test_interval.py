from math import inf, isnan, nan

import pytest
from scipy.stats import t

from sojourn.measure.interval import Interval


def test_an_interval_is_as_wide_as_values_spread():
    """Twenty values, ten at 1 and ten at 3: standard deviation 1.026, t of 19 is 2.093."""
    interval = Interval.over([1.0, 3.0] * 10)
    assert interval.value == 2.0
    assert interval.half_width == pytest.approx(2.093 * 1.025978 / 20**0.5, rel=1e-5)
    assert Interval.over([2.0] * 20).half_width == 0


@pytest.mark.parametrize("number", [2, 3, 5, 11, 20, 21, 50, 200])
def test_it_is_that_of_student(number):
    values = [0.0, 1.0] * number
    spread = (len(values) / 4 / (len(values) - 1)) ** 0.5 / len(values) ** 0.5
    exact = t.ppf(0.975, len(values) - 1) * spread
    assert Interval.over(values).half_width == pytest.approx(exact, rel=0.04)


def test_intervals_shrink_with_values():
    few, many = (Interval.over([1.0, 2.0, 3.0] * n) for n in (1, 5))
    assert few.value == many.value == 2
    assert many.half_width < few.half_width


def test_what_is_not_known_does_not_count():
    assert Interval.over([1.0, nan, 2.0, inf, 3.0]) == Interval.over([1.0, 2.0, 3.0])
    assert isnan(Interval.over([nan, 1.0]).half_width)
    assert isnan(Interval.over([]).value)

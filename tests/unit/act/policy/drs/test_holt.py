import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.act.policy.drs.holt import Holt
from sojourn.errors import BadInput


@given(st.floats(0, 1e6), st.floats(0, 100))
def test_a_straight_line_goes_on(start, slope):
    line = [(10.0 * i, start + slope * 10 * i) for i in range(20)]
    assert Holt()(line, 250.0) == pytest.approx(start + slope * 250, rel=1e-9, abs=1e-9)


def test_a_steady_value_stays():
    assert Holt()([(float(i), 5.0) for i in range(50)], 100.0) == pytest.approx(5.0)


def test_one_value_is_its_own_forecast():
    assert Holt()([(0.0, 7.0)], 100.0) == 7.0


def test_it_never_forecasts_less_than_nothing():
    assert Holt()([(0.0, 10.0), (1.0, 5.0), (2.0, 1.0)], 60.0) == 0.0


def test_times_that_do_not_go_on_are_left_out():
    assert Holt()([(0.0, 1.0), (0.0, 9.0), (1.0, 1.0)], 2.0) == pytest.approx(1.0)


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="no history to forecast from"):
        Holt()([], 1.0)
    with pytest.raises(BadInput, match="both must be between 0 and 1"):
        Holt(level=0.0)

import pickle
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.measure.sketch import Sketch

times = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=200)


@given(times_s=times, ratio=st.floats(0.01, 1))
def test_a_percentile_is_right_to_a_five_hundredth(times_s, ratio):
    exactly = float(np.quantile(times_s, ratio, method="inverted_cdf"))
    assert Sketch.of(times_s).percentile_s(ratio) == pytest.approx(exactly, rel=0.0021)


@given(first=times, second=times)
def test_merging_is_as_if_all_had_been_seen_at_once(first, second):
    merged, whole = Sketch.of(first) + Sketch.of(second), Sketch.of(first + second)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    assert merged.mean_s == pytest.approx(whole.mean_s)
    assert merged.std_s == pytest.approx(whole.std_s, rel=1e-4, abs=1e-6 * max(first + second))


@given(times_s=times)
def test_mean_and_deviation_are_exact(times_s):
    sketch = Sketch.of(times_s)
    assert sketch.number == len(times_s)
    assert sketch.mean_s == pytest.approx(np.mean(times_s))
    assert sketch.std_s == pytest.approx(np.std(times_s), rel=1e-4, abs=1e-6 * max(times_s))


@given(times_s=times, factor=st.floats(1e-2, 1e2), ratio=st.floats(0.01, 1))
def test_longer_times_have_a_longer_mean_and_longer_percentiles(times_s, factor, ratio):
    exactly, longer = Sketch.of([factor * t for t in times_s]), Sketch.of(times_s).times(factor)
    assert longer.number == exactly.number
    assert longer.mean_s == pytest.approx(exactly.mean_s)
    assert longer.sum_ss == pytest.approx(exactly.sum_ss)
    assert longer.percentile_s(ratio) == pytest.approx(exactly.percentile_s(ratio), rel=0.0061)


def test_times_that_are_too_short_or_too_long_stay_so():
    assert Sketch.of([0.0, 1.0]).times(1e6).percentile_s(0.5) == 0
    assert Sketch.of([1e8]).times(1e6).percentile_s(0.5) >= 1e9
    assert Sketch.of([1e-8]).times(1e-6).percentile_s(0.5) == 0
    assert Sketch.empty().times(3).number == 0


def test_what_takes_no_time_counts_too():
    sketch = Sketch.of([0.0, 0.0, 0.0, 1.0])
    assert sketch.percentile_s(0.5) == 0
    assert sketch.percentile_s(1.0) == pytest.approx(1.0, rel=0.003)


def test_times_beyond_the_buckets_are_counted_in_the_last():
    sketch = Sketch.of([1e12])
    assert sketch.number == 1
    assert sketch.percentile_s(0.5) >= 1e9
    assert sketch.mean_s == 1e12


def test_of_none_nothing_is_known():
    empty = Sketch.empty()
    assert empty.number == 0
    assert all(map(isnan, (empty.mean_s, empty.std_s, empty.percentile_s(0.5))))
    assert (empty + Sketch.of([2.0])).mean_s == 2.0


def test_sketches_travel_between_processes():
    sketch = pickle.loads(pickle.dumps(Sketch.of([1.0, 2.0])))
    assert sketch.mean_s == 1.5

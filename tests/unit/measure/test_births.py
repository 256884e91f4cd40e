"""Roots by the time slice of their birth."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sojourn.measure.births import Births, RootTimes

TIMES = st.lists(
    st.tuples(st.floats(0, 1000), st.floats(0, 50), st.integers(1, 5), st.booleans()),
    max_size=40,
)


def times(roots):
    done = [root for root in roots if not root[3]]
    still = [root for root in roots if root[3]]
    return RootTimes(
        birth_s=np.array([birth_s for birth_s, *_ in done]),
        completion_s=np.array([took_s for _, took_s, *_ in done]),
        sum_s=np.array([2 * took_s for _, took_s, *_ in done]),
        weight=np.array([float(weight) for _, _, weight, _ in done]),
        open_birth_s=np.array([birth_s for birth_s, *_ in still]),
        open_weight=np.array([float(weight) for _, _, weight, _ in still]),
    )


def test_no_roots_are_in_no_slice():
    assert list(RootTimes().in_slices(60.0, 1.0, 10.0)) == []


def test_a_root_counts_in_the_slice_of_its_birth_with_its_weight():
    found = times([(59.9, 30.0, 2, False), (60.0, 1.0, 1, False), (61.0, 0.0, 3, True)])
    assert list(found.in_slices(60.0, 1.0, 71.0)) == [
        Births(slice=0, completed=2, in_time=0, sum_s=120.0),
        Births(slice=1, completed=1, in_time=1, sum_s=2.0, open=3, open_s=30.0),
    ]


@given(roots=TIMES, slice_s=st.floats(0.5, 400), within_s=st.floats(0, 60))
def test_every_root_is_in_one_slice(roots, slice_s, within_s):
    found = list(times(roots).in_slices(slice_s, within_s, 1000.0))
    done = [root for root in roots if not root[3]]
    assert sum(births.completed for births in found) == sum(root[2] for root in done)
    assert sum(births.in_time for births in found) == sum(
        root[2] for root in done if root[1] <= within_s
    )
    assert sum(births.open for births in found) == sum(root[2] for root in roots if root[3])
    assert [births.slice for births in found] == sorted({births.slice for births in found})

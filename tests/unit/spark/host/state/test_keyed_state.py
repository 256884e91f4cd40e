"""Keys in order, in blocks of any length."""

from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.host.state.keyed_state import OrderedKeys

_key = st.text("abc", max_size=4)


@given(
    begun=st.sets(_key),
    added=st.lists(_key, unique=True),
    bounds=st.tuples(_key, _key),
    longest=st.integers(1, 5),
)
def test_a_range_is_what_sorting_gives(begun, added, bounds, longest):
    keys = OrderedKeys(begun, longest=longest)
    for key in added:
        if key not in begun:
            keys.add(key)
    start, end = bounds
    expected = sorted(key for key in begun | set(added) if start <= key < end)
    assert list(keys.between(start, end)) == expected

"""States as bytes, and as what a function gets."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.app.state import state_fields
from sojourn.errors import BadRecord
from sojourn.spark.processor.state_codec import StateCodec


def codec(declared):
    return StateCodec("operators.count.state", state_fields("operators.count.state", declared))


def test_a_key_without_state_has_the_defaults_each_its_own():
    seen = codec({"n": 0, "seen": ("array<string>", [])})
    first, second = seen.decode(b""), seen.decode(b"")
    first["seen"].append("a")
    assert second == {"n": 0, "seen": []}


@given(
    state=st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "seen": st.none() | st.lists(st.none() | st.text(), max_size=3),
            "by": st.none() | st.dictionaries(st.integers(-9, 9), st.floats(allow_nan=False)),
            "raw": st.none() | st.binary(),
            "cost": st.none() | st.decimals(-999, 999, places=2).map(lambda d: d + 0),
            "day": st.none() | st.dates(),
            "at": st.none() | st.datetimes(timezones=st.just(dt.UTC)),
            "pair": st.none() | st.tuples(st.none() | st.integers(-9, 9), st.text()),
        }
    )
)
def test_what_is_written_is_read(state):
    kept = codec(
        "n bigint, seen array<string>, by map<int, double>, raw binary, cost decimal(5,2), "
        "day date, at timestamp, pair struct<a: int, b: string>"
    )
    assert kept.decode(kept.encode(state)) == state


def test_a_state_as_the_defaults_takes_no_room():
    counts = codec({"n": 0})
    assert counts.encode({"n": 0}) == counts.encode({}) == b""
    assert counts.encode({"n": 1}) != b""


def test_fields_may_be_added_and_removed():
    before = codec({"n": 0, "old": ""}).encode({"n": 3, "old": "x"})
    assert codec({"n": 0, "mean": 1.5}).decode(before) == {"n": 3, "mean": 1.5}


def test_a_field_of_another_type_is_refused_with_the_way_out():
    before = codec({"n": 0}).encode({"n": 3})
    with pytest.raises(BadRecord, match=r"count.state.*does not fit.*rename a field"):
        codec({"n": ""}).decode(before)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"n": "x"}, r"operators.count.state.n.*'x' .*does not fit bigint"),
        ({"n": 2**63}, "out of range"),
        ({"m": 1}, "there is no field 'm'; write one of n, seen"),
        ({"seen": ["a", 7]}, r"state.seen\[1\].*does not fit string"),
        ({"cost": Decimal(1)}, "there is no field 'cost'"),
    ],
)
def test_what_does_not_fit_is_refused(state, said):
    with pytest.raises(BadRecord, match=said):
        codec({"n": 0, "seen": ("array<string>", [])}).encode(state)

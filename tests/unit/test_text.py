import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.text import shown


@pytest.mark.parametrize("value", [1, 0.5, "match", None, True, [1, "a"], {"a": [2]}, ()])
def test_a_short_value_is_shown_as_python_writes_it(value):
    assert shown(value) == repr(value)


def test_a_long_value_is_shown_by_its_beginning():
    assert shown("frames" * 100) == "'" + ("frames" * 100)[:56] + "..."


@given(value=st.recursive(st.floats() | st.text() | st.binary(), st.lists, max_leaves=100))
def test_no_value_is_shown_at_length(value):
    assert 0 < len(shown(value)) <= 60


def test_an_integer_that_python_does_not_print_is_shown_in_words():
    assert shown(10**5000) == "a number of thousands of digits"


def test_a_list_that_holds_itself_is_shown():
    endless = []
    endless.append(endless)
    assert shown(endless) == "[[[[...]]]]"


def test_a_list_that_amounts_to_a_billion_items_is_shown():
    """A file of a few lines of aliases holds one; written out it fills the memory."""
    laughs = ["ha"] * 10
    for _ in range(30):
        laughs = [laughs] * 10
    assert len(shown(laughs)) == 60


def test_a_list_nested_deeper_than_python_recurses_is_shown():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "[[[[...]]]]"

import pytest

from sojourn.last_allocation import keep_allocation, last_allocation


def test_processors_are_kept_for_the_next_start(tmp_path):
    state = tmp_path / "state"
    assert last_allocation(state) == {}
    keep_allocation(state, {"split": 3, "count": 1})
    assert last_allocation(state) == {"split": 3, "count": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"split": 0}', '{"split": "3"}', "\xff"])
def test_processors_that_nobody_can_have_kept_are_not_known(tmp_path, text):
    """The loop finds out in a moment; a start that fails would be worse."""
    (tmp_path / "allocation.json").write_text(text, encoding="latin-1")
    assert last_allocation(tmp_path) == {}

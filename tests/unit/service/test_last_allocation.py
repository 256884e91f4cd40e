import json
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.service.last_allocation import LastAllocation


def test_the_next_start_reads_the_allocation_that_was_saved_last(tmp_path):
    last = LastAllocation(tmp_path / "state")
    assert last.read() == {}
    last.save({"split": 3, "count": 1})
    last.save({"split": 4, "count": 1})
    assert LastAllocation(tmp_path / "state").read() == {"split": 4, "count": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"split": 0}', '{"split": "3"}', "\xff"])
def test_an_invalid_allocation_is_ignored(tmp_path, text):
    """The loop finds out in a moment; a start that fails would be worse."""
    (tmp_path / "allocation.json").write_text(text, encoding="latin-1")
    assert LastAllocation(tmp_path).read() == {}


@contextmanager
def unwritable(folder):
    """Put a folder where the new version of the file is written."""
    there = folder / "allocation.json.new"
    there.mkdir()
    yield
    there.rmdir()


@given(turns=st.lists(st.tuples(st.integers(1, 3), st.booleans())))
def test_there_is_a_failure_exactly_while_another_allocation_is_saved(turns):
    """Whatever could be written: the old file stays whole, and a later turn tries again."""
    with TemporaryDirectory() as folder:
        last, saved = LastAllocation(Path(folder)), {}
        for processors, fails in turns:
            now = {"split": processors}
            if fails:
                with unwritable(Path(folder)):
                    last.save(now)
            else:
                last.save(now)
                saved = now
            assert LastAllocation(Path(folder)).read() == saved
            assert bool(last.failure) == (saved != now)


def test_a_full_disk_is_named_and_the_allocation_before_remains(small_disk):
    state = small_disk / "state"
    last = LastAllocation(state)
    last.save({"split": 3})
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filled").write_bytes(bytes(1 << 20))
    last.save({"split": 4})
    assert last.failure.endswith(f"No space left on device; make room in {state}")
    assert json.loads((state / "allocation.json").read_text()) == {"split": 3}
    (small_disk / "filled").unlink()
    last.save({"split": 4})
    assert (last.failure, LastAllocation(state).read()) == ("", {"split": 4})

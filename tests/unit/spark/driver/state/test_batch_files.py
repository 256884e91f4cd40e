"""Spark's files after a power failure; what a whole one looks like is taken from Spark 4.3."""

import pytest

from sojourn.spark.driver.state.batch_files import (
    batch_numbers,
    drop_torn_batches,
    raise_offsets,
)

COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
OFFSETS = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"lines":{"0":7}}'


@pytest.fixture
def checkpoint(tmp_path):
    """Return a checkpoint with four commits, and the offsets of a batch that runs."""
    for folder, content, number in (("commits", COMMIT, 4), ("offsets", OFFSETS, 5)):
        (tmp_path / folder).mkdir()
        for batch in range(number):
            (tmp_path / folder / str(batch)).write_text(content)
            (tmp_path / folder / f".{batch}.crc").write_text("crc")
    return tmp_path


def there(checkpoint):
    return [batch_numbers(checkpoint / name) for name in ("commits", "offsets")]


def test_a_checkpoint_that_is_whole_stays_as_it_is(checkpoint):
    before = sorted(path.name for path in checkpoint.rglob("*"))
    assert drop_torn_batches(checkpoint) == []
    assert sorted(path.name for path in checkpoint.rglob("*")) == before
    assert drop_torn_batches(checkpoint / "nothing") == []


@pytest.mark.parametrize("torn", ["", "\0" * 40, COMMIT[:-3], "v1"])
def test_a_commit_that_is_torn_is_taken_back(checkpoint, torn):
    (checkpoint / "commits" / "3").write_text(torn)
    assert drop_torn_batches(checkpoint) == [3]
    assert there(checkpoint) == [[0, 1, 2], [0, 1, 2, 3]]  # it runs again to where it ended
    assert not (checkpoint / "commits" / ".3.crc").exists()


def test_a_commit_without_its_offsets_is_taken_back(checkpoint):
    (checkpoint / "offsets" / "3").write_text("v1\n{}\n{")
    (checkpoint / "offsets" / "2").unlink()
    assert drop_torn_batches(checkpoint) == [3, 2]
    assert there(checkpoint) == [[0, 1], [0, 1]]


def test_offsets_that_are_torn_of_a_batch_that_ran_are_dropped(checkpoint):
    (checkpoint / "offsets" / "4").write_text("")
    assert drop_torn_batches(checkpoint) == []
    assert there(checkpoint) == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_offsets_behind_commits_that_are_lost_are_dropped(checkpoint):
    """Spark would begin with the last of them, and leave out what is between."""
    for batch in (2, 3):
        (checkpoint / "commits" / str(batch)).unlink()
    assert drop_torn_batches(checkpoint) == []
    assert there(checkpoint) == [[0, 1], [0, 1, 2]]


def test_nothing_may_be_left(checkpoint):
    for path in (checkpoint / "commits").iterdir():
        path.write_text("")
    assert drop_torn_batches(checkpoint) == [3, 2, 1, 0]
    assert there(checkpoint) == [[], [0]]


def test_a_query_continues_behind_what_is_lost(checkpoint):
    two = 'v1\n{"conf":{}}\n{"lines":{"0":7,"1":50}}\n-'
    for batch in (2, 3, 4):
        (checkpoint / "offsets" / str(batch)).write_text(two)
    raise_offsets(checkpoint, {"lines": {0: 20, 1: 20}, "others": {0: 90}})
    assert (checkpoint / "offsets" / "2").read_text() == two
    behind = 'v1\n{"conf":{}}\n{"lines":{"0":20,"1":50}}\n-'
    for batch in (3, 4):  # the last one that is committed, and one that is to run again
        assert (checkpoint / "offsets" / str(batch)).read_text() == behind
        assert not (checkpoint / "offsets" / f".{batch}.crc").exists()


def test_a_query_that_has_committed_nothing_ends_its_first_batch_behind_what_is_lost(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(OFFSETS)
    raise_offsets(tmp_path, {"lines": {0: 20}})
    assert (tmp_path / "offsets" / "0").read_text().endswith('{"lines":{"0":20}}')
    raise_offsets(tmp_path / "nothing", {"lines": {0: 20}})

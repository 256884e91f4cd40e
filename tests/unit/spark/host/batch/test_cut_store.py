from concurrent.futures import ThreadPoolExecutor

import pytest

from sojourn.errors import BadFile, EngineError
from sojourn.files.durable_file import write_checked
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.wire.record import Record, Root

LINES = ("lines", 3)
OPEN = OpenRecord(
    Root(LINES, 7), "split", Record("a", b"{}", "lines", blobs={"photo": b"\xff"}, key="k")
)


def cut(batch, attempt=1, **fields):
    return Cut(id=CutId(batch, attempt), taken={LINES: 8, ("prices", 0): 0}, **fields)


def test_a_cut_comes_back_as_it_was(tmp_path):
    files = CutFiles(tmp_path / "part")
    files.save(cut(4, open=(OPEN,)))
    assert files.load(CutId(4, 1)) == cut(4, open=(OPEN,))


def test_the_last_attempt_at_a_batch_counts(tmp_path):
    files = CutFiles(tmp_path)
    for kept in (cut(4, 2), cut(4, 10), cut(4, 9), cut(5, 1)):
        files.save(kept)
    assert files.last(4) == CutId(4, 10)
    files.drop_before(5)
    assert files.last(5) == CutId(5, 1)
    with pytest.raises(EngineError, match="no cut of batch 4"):
        files.last(4)


def test_before_the_first_batch_there_is_nothing(tmp_path):
    files = CutFiles(tmp_path)
    assert files.load(files.last(-1)) == Cut(id=CutId(-1, 0), taken={})


def test_what_is_no_cut_is_passed_over_and_a_broken_one_is_named(tmp_path):
    files = CutFiles(tmp_path)
    files.save(cut(4))
    (tmp_path / "cuts" / "4-2.new").write_bytes(b"half")
    assert files.last(4) == CutId(4, 1)
    write_checked(tmp_path / "cuts" / "4-1", b"half")
    with pytest.raises(BadFile, match=r"4-1: cannot be read: .*--fresh"):
        files.load(CutId(4, 1))
    with pytest.raises(BadFile, match="4-7: is missing"):
        files.load(CutId(4, 7))


def test_every_run_has_a_number_of_its_own_and_keeps_it(tmp_path):
    files = CutFiles(tmp_path)
    runs = [f"run-{n}" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(files.attempts.number, runs * 3))
    assert len(set(numbers)) == 8
    assert [files.attempts.number(run) for run in runs] == numbers[:8] == numbers[8:16]
    assert CutFiles(tmp_path).attempts.number("another") > max(numbers)

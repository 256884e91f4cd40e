"""A state folder of which files are missing, truncated or damaged: refused, and named."""

import os
import shutil

import pytest

from sojourn.errors import BadFile, EngineError
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.keyed_state import MergeState
from sojourn.spark.host.state.state_files import StateFiles
from unit.spark.host.word_count import WordCountHost


def counted(folder):
    """Count words in some batches, so that all states are in the store, and none beside it."""
    host = WordCountHost(folder)
    for batch, lines in enumerate((["a b a"], ["a"], ["b"], [], [], [], [], [])):
        host.relay_comes(batch + 1, batch=batch, attempt=1)
        host.merge()
        host.take(batch + 1, lines, first=batch)
        host.work_off()
        host.end_batch(batch + 1)
    host.files.close()
    return host


def resumed(folder):
    host = WordCountHost(folder)
    try:
        host.relay_comes(1, batch=8, attempt=2)
        return host.counts("a", "b")
    finally:
        host.files.close()


@pytest.fixture
def folder(tmp_path):
    counted(tmp_path / "part")
    assert resumed(tmp_path / "part") == {"a": 3, "b": 2}
    return tmp_path / "part"


def test_a_store_that_is_missing_is_refused(folder):
    """States of all keys would begin with their defaults."""
    shutil.rmtree(folder / "state" / "store")
    with pytest.raises(BadFile, match=r"data\.mdb: is missing.*; restore .*--fresh"):
        resumed(folder)
    assert not (folder / "state" / "store" / "data.mdb").exists()


@pytest.mark.parametrize("part", [0, 0.5, 0.9])
def test_a_store_that_is_truncated_is_refused(folder, part):
    """Reading behind its end would kill the process."""
    data = folder / "state" / "store" / "data.mdb"
    os.truncate(data, int(part * data.stat().st_size))
    with pytest.raises(BadFile, match=r"data\.mdb: is (truncated|missing).*--fresh"):
        resumed(folder)


def test_a_store_of_an_earlier_time_is_refused(folder, tmp_path):
    earlier = tmp_path / "earlier"
    counted(earlier)
    files = StateFiles(earlier / "state")
    size = (earlier / "state" / "store" / "data.mdb").stat().st_size
    files.close()
    shutil.rmtree(earlier / "state" / "store")
    files.merge(MergeState(0, [(CutId(0, 1), {"count": {"a": b"2", "b": b"1"}})]))
    files.close()
    os.truncate(earlier / "state" / "store" / "data.mdb", size)
    shutil.rmtree(folder / "state" / "store")
    shutil.copytree(earlier / "state" / "store", folder / "state" / "store")
    with pytest.raises(BadFile, match=r"store: has states up to batch 0, not batch .*--fresh"):
        resumed(folder)


def test_a_cut_that_is_damaged_is_refused(folder):
    path = folder / "cuts" / "7-1"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadFile, match=r"7-1: is damaged: its checksum does not match"):
        resumed(folder)


def test_changed_states_that_are_damaged_or_missing_are_refused(tmp_path):
    host = WordCountHost(tmp_path)
    host.relay_comes(1, batch=0, attempt=1)
    host.take(1, ["a"])
    host.work_off()
    host.end_batch(1)
    host.files.close()
    path = tmp_path / "state" / "changed" / "0-1"
    content = path.read_bytes()
    for damaged in (content[:-1], content[:-1] + b"\0"):
        path.write_bytes(damaged)
        with pytest.raises(BadFile, match=r"0-1: is (truncated|damaged)"):
            WordCountHost(tmp_path).relay_comes(2, batch=1, attempt=2)
    path.unlink()
    with pytest.raises(BadFile, match=r"0-1: is missing.*--fresh"):
        WordCountHost(tmp_path).relay_comes(2, batch=1, attempt=2)


def test_a_segment_that_is_damaged_is_refused(tmp_path):
    files = CutFiles(tmp_path)
    name = files.segments.write(0, [])
    path = tmp_path / "segments" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadFile, match="is truncated"):
        files.segments.read(name)
    path.unlink()
    with pytest.raises(BadFile, match="is missing"):
        files.segments.read(name)


def damaged_store(folder, damage):
    """Make a store with many states, and damage its file."""
    files = StateFiles(folder)
    states = {f"k{number}": b"x" * 50 for number in range(20_000)}
    files.merge(MergeState(3, [(CutId(3, 1), {"count": states, "later@reminders": states})]))
    files.close()
    with (folder / "store" / "data.mdb").open("r+b") as file:
        damage(file, file.seek(0, os.SEEK_END))
    return StateFiles(folder)


def scribbled(file, size):
    file.seek(size // 3)
    file.write(b"\xa5" * (size // 3))


def zeroed(file, size):
    file.seek(8192)
    file.write(bytes(size - 8192))


def read_all(files):
    yield files.merged
    yield lambda: [files.look_up("count", f"k{number}") for number in range(20_000)]
    yield lambda: dict(files.states("count"))
    yield lambda: files.ordered("later@reminders", "k", "l", 20_000)


@pytest.mark.parametrize("damage", [scribbled, zeroed])
def test_an_error_of_the_store_is_an_error_with_the_path_and_the_way_out(tmp_path, damage):
    files, errors = damaged_store(tmp_path, damage), []
    for read in read_all(files):
        try:
            read()
        except BadFile as error:
            errors.append(str(error))
    assert len(errors) >= 3
    assert all("store: cannot be read: mdb_" in text and "--fresh" in text for text in errors)
    with pytest.raises(EngineError, match=r"store cannot be written: mdb_"):
        files.merge(
            MergeState(4, [(CutId(4, 1), {"count": {f"k{n}": b"y" for n in range(99)}})])
        )
    files.close()


def test_a_state_with_other_bytes_is_refused(tmp_path):
    """The store itself does not notice: it has no checksums."""

    def flip(file, _size):
        file.seek(0)
        place = file.read().index(b"x" * 50)
        file.seek(place + 7)
        file.write(b"y")

    files = damaged_store(tmp_path, flip)
    with pytest.raises(BadFile, match="its checksum does not match"):
        dict(files.states("count"))
    with pytest.raises(BadFile, match="its checksum does not match"):
        [files.look_up("count", f"k{number}") for number in range(20_000)]
    files.close()

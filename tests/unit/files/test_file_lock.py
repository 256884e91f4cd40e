import os

import pytest

from sojourn.errors import BadFile, EngineError
from sojourn.files.file_lock import FileLock


def test_one_has_it_at_a_time_and_the_file_says_who(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.take("me")
    assert not second.take("you")
    assert second.holder() == "me"
    first.release()
    assert second.take("you")
    assert first.path.read_text() == "you"


def test_who_is_refused_is_told_the_pid(tmp_path):
    held = FileLock(tmp_path / "folder" / "lock")
    held.take_or_refuse("it is used", "wait")
    with pytest.raises(EngineError, match=f"it is used, pid {os.getpid()}; wait"):
        FileLock(held.path).take_or_refuse("it is used", "wait")


def test_releasing_twice_does_nothing(tmp_path):
    lock = FileLock(tmp_path / "lock")
    assert lock.take("me")
    lock.release()
    lock.release()
    with pytest.raises(EngineError, match="is not locked"):
        _ = lock.file


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(BadFile, match="lock: cannot be written"):
        FileLock(tmp_path / "lock").take("me")

import pytest

from sojourn.errors import BadFile
from sojourn.files.checked_file import read_checked, write_checked


@pytest.fixture
def path(tmp_path):
    write_checked(tmp_path / "cut", b"the open records")
    return tmp_path / "cut"


def test_it_comes_back_as_it_was(path):
    assert read_checked(path) == b"the open records"
    write_checked(path, b"")
    assert read_checked(path) == b""


def test_a_change_of_any_byte_is_noticed(path):
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(BadFile, match=r"cut: is (damaged|truncated).*; restore .*--fresh"):
            read_checked(path)


def test_an_end_that_is_missing_or_added_is_noticed(path):
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(BadFile, match="is truncated: it has"):
            read_checked(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(BadFile, match="checksum"):
        read_checked(path)


def test_a_missing_file_is_for_the_caller_and_an_unreadable_one_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_checked(tmp_path / "nothing")
    with pytest.raises(BadFile, match="cannot be read: Is a directory"):
        read_checked(tmp_path)

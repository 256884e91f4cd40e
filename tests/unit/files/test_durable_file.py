"""A file is the old version or the new one, whatever happens while it is written."""

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.errors import BadFile, EngineError
from sojourn.files.durable_file import read_checked, write_checked, write_durably

OLD, NEW = b"old", b"new" * 10_000


def test_what_is_written_replaces_what_was_there(tmp_path):
    path = tmp_path / "deep" / "down" / "file"
    write_durably(path, OLD)
    write_durably(path, NEW)
    assert path.read_bytes() == NEW
    assert [found.name for found in path.parent.iterdir()] == ["file"]


def test_it_is_on_the_disk_before_it_has_its_name_and_the_name_is_too(tmp_path, monkeypatch):
    done = []
    sync, replace = os.fsync, type(tmp_path).replace

    def synced(file):
        done.append(("sync", Path(f"/proc/self/fd/{file}").readlink().name))
        sync(file)

    def replaced(new, path):
        done.append(("name", path.name))
        return replace(new, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(type(tmp_path), "replace", replaced)
    write_durably(tmp_path / "made" / "file", NEW)
    assert done == [
        ("sync", tmp_path.name),  # the folder that was made is found again
        ("sync", "file.new"),
        ("name", "file"),
        ("sync", "made"),
    ]


def test_what_has_not_changed_is_not_written_again(tmp_path):
    path = tmp_path / "file"
    write_durably(path, OLD)
    before = path.stat()
    write_durably(path, OLD)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_others_may_not_read_it(tmp_path):
    path = tmp_path / "file"
    write_durably(path, OLD)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("code", "way_out"),
    [(errno.ENOSPC, "make room in"), (errno.EDQUOT, "make room in"), (errno.EIO, "check")],
)
def test_where_it_cannot_be_written_the_old_version_stays(tmp_path, monkeypatch, code, way_out):
    path = tmp_path / "file"
    write_durably(path, OLD)

    def full(_file):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EngineError) as raised:
        write_durably(path, NEW)
    assert str(raised.value) == (
        f"{path} cannot be written: {os.strerror(code)}; {way_out} {tmp_path}"
    )
    assert path.read_bytes() == OLD
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def limited_to_100_bytes():
    """Let no file grow beyond: a write fails half-way, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_write_that_fails_half_way_leaves_the_old_version(tmp_path):
    path = tmp_path / "file"
    write_durably(path, OLD)
    program = (
        "import pathlib, sys; from sojourn.files.durable_file import write_durably\n"
        "write_durably(pathlib.Path(sys.argv[1]), b'x' * 1000)"
    )
    ended = subprocess.run(
        [sys.executable, "-B", "-c", program, path],
        preexec_fn=limited_to_100_bytes,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be written: File too large" in ended.stderr
    assert path.read_bytes() == OLD
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def checked(tmp_path):
    write_checked(tmp_path / "cut", b"the open records")
    return tmp_path / "cut"


def test_what_is_checked_comes_back_as_it_was(checked):
    assert read_checked(checked) == b"the open records"
    write_checked(checked, b"")
    assert read_checked(checked) == b""


def test_a_change_of_any_byte_is_noticed(checked):
    content = checked.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        checked.write_bytes(damaged)
        with pytest.raises(BadFile, match=r"cut: is (damaged|truncated).*; restore .*--fresh"):
            read_checked(checked)


def test_an_end_that_is_missing_or_added_is_noticed(checked):
    content = checked.read_bytes()
    for length in range(len(content)):
        checked.write_bytes(content[:length])
        with pytest.raises(BadFile, match="is truncated: it has"):
            read_checked(checked)
    checked.write_bytes(content + b"\0")
    with pytest.raises(BadFile, match="checksum"):
        read_checked(checked)


def test_a_missing_file_is_for_the_caller_and_an_unreadable_one_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_checked(tmp_path / "nothing")
    with pytest.raises(BadFile, match="cannot be read: Is a directory"):
        read_checked(tmp_path)

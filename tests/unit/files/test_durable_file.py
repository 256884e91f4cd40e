"""A file is the old version or the new one, whatever happens while it is written."""

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.errors import EngineError
from sojourn.files.durable_file import write_durably

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

"""A disk of a few megabytes that somebody else can fill: a real one, in memory."""

import os
import subprocess
from contextlib import contextmanager, suppress

import pytest

_BLOCK = 4096


class SmallDisk:
    """A file system mounted at *folder*."""

    def __init__(self, folder):
        self.folder = folder
        self._other = folder / "of somebody else"

    def fill(self, *, leave_bytes=0):
        """Let somebody else take all that is left, but for so many bytes."""
        with self._other.open("ab", buffering=0) as file, suppress(OSError):
            while self.free_bytes() > leave_bytes + (1 << 16):
                file.write(bytes(1 << 16))
            while self.free_bytes() > leave_bytes:
                file.write(bytes(_BLOCK))

    def free(self):
        """Let somebody else remove it all."""
        self._other.unlink()

    def free_bytes(self):
        there = os.statvfs(self.folder)
        return there.f_bavail * there.f_frsize


@contextmanager
def mounted(folder, size_bytes):
    """Mount a file system of that size at *folder*; skip the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-o", f"size={size_bytes}", "none"]
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", *options, folder], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.decode().strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)

import subprocess

import pytest


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Give the test folders of its own for running applications and their state."""
    runtime, state = tmp_path / "r", tmp_path / "s"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return runtime / "sojourn"


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder with room for 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("only root may mount a disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)

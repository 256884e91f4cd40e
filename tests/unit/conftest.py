import pytest

from small_disk import mounted


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
    with mounted(tmp_path / "disk", 256 << 10) as disk:
        yield disk.folder

import pytest


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Give the test folders of its own for running applications and their state."""
    runtime, state = tmp_path / "r", tmp_path / "s"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return runtime / "sojourn"

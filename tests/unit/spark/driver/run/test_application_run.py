"""Starts that fail: each step closes what was opened before it."""

from contextlib import ExitStack

import pytest

from sojourn.errors import EngineError
from sojourn.spark.driver.run.application_run import start_application
from sojourn.spark.driver.state.state_lock import StateLock


def fails(request):
    with pytest.raises(EngineError) as failed, ExitStack() as stack:
        start_application(request, stack)
    return str(failed.value)


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))


@pytest.mark.usefixtures("no_java")
def test_without_java_a_start_leaves_no_temporary_folder(request_start, temporary):
    assert "Java 17 or newer is required" in fails(request_start())
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("no_java")
def test_without_java_a_start_leaves_the_state_unlocked_and_nothing_to_resume(
    request_start, tmp_path
):
    folder = tmp_path / "state"
    fails(request_start(folder))
    assert not (folder / "application.json").exists()
    with StateLock(folder):
        pass

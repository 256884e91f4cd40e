"""The controller and its hosts: started, scaled, heard, ended."""

import time

import pytest

from sojourn.errors import EngineError
from sojourn.host.controller import Controller
from sojourn.host.server import Settings


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")


def settings(folder, **fields):
    told = {"name": "shout", "job": "unit.host.jobs:shout", "report_every_s": 0.1}
    return Settings(folder=folder, **(told | fields))


def test_hosts_are_started_scaled_and_ended(tmp_path):
    with Controller(tmp_path / "all") as controller:
        reached = controller.start(settings(tmp_path / "one", processors=2))
        assert reached.is_socket()
        controller.scale("shout", 5)
        controller.await_running("shout", 5)
        assert controller.tallies()["shout"][-1].wanted == 5
        assert controller.broken() == {}
        process = controller._processes["shout"]  # noqa: SLF001
    assert process.poll() is not None
    assert not reached.exists()


def test_a_host_that_breaks_is_said_to_be_broken(tmp_path):
    with (
        Controller(tmp_path / "all") as controller,
        pytest.raises(EngineError, match=r"shout: .*(not ready|ended)"),
    ):
        controller.start(settings(tmp_path / "one", argument="never"))


def test_a_job_that_is_not_there_is_said(tmp_path):
    with (
        Controller(tmp_path / "all") as controller,
        pytest.raises(EngineError, match="shout: "),
    ):
        controller.start(settings(tmp_path / "one", job="unit.host.jobs:nothing"))


def test_waiting_has_an_end(tmp_path):
    with Controller(tmp_path / "all") as controller:
        controller.start(settings(tmp_path / "one"))
        began_s = time.monotonic()
        with pytest.raises(EngineError, match=r"no 99 processors within 0\.3 s"):
            controller.await_running("shout", 99, patience_s=0.3)
        assert time.monotonic() - began_s >= 0.3


def test_a_host_that_is_not_there_cannot_be_scaled(tmp_path):
    with (
        Controller(tmp_path / "all") as controller,
        pytest.raises(EngineError, match="its host is not there"),
    ):
        controller.scale("shout", 3)


def test_only_the_owner_may_command(tmp_path):
    with Controller(tmp_path / "all"):
        assert (tmp_path / "all").stat().st_mode & 0o777 == 0o700

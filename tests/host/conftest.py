"""Hosts for relays under test."""

import pytest

from sojourn.host.controller import Controller
from sojourn.host.server import HostSettings

APP = "unit.host.application:app split"


@pytest.fixture
def controller(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with Controller(tmp_path / "all") as running:
        yield running


@pytest.fixture
def host(tmp_path, controller):
    """Start a host of the test's application, and return how."""

    def start(**fields):
        told = {"job": "sojourn.host.operator_job:of_application", "argument": APP}
        settings = HostSettings(name="split", folder=tmp_path / "split", **(told | fields))
        path = controller.start(settings)
        controller.await_running("split", settings.processors)
        return path

    return start

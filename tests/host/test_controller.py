"""The controller and its hosts: started, scaled, heard, ended."""

import os
import signal
import socket
import time
from dataclasses import replace

import psutil
import pytest

from sojourn.errors import EngineError
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.controller import Broken, HostHello
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.host_settings import HostSettings, OperatorSettings
from sojourn.spark.wire.relay import AllRead


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")


def settings(folder, *, name="part", operators=("shout",), logs=None, **fields):
    """Return the settings of a host whose operators are all the same."""
    told = OperatorSettings(**({"job": "unit.spark.host.jobs:shout"} | fields))
    return HostSettings(
        name=name,
        operators=dict.fromkeys(operators, told),
        readers={"in": operators},
        leaving=("out",),
        folder=folder,
        cuts=folder / "cuts",
        logs=logs,
    )


def test_hosts_are_started_scaled_and_ended(tmp_path):
    with Controller(tmp_path / "all") as controller:
        reached = controller.start(settings(tmp_path / "one", processors=2))
        assert reached.is_socket()
        controller.scale("shout", 5)
        controller.await_running("shout", 5)
        assert asked(controller).state.wanted == 5
        assert controller.ended() == {}
        process = psutil.Process(controller.pid("shout"))
    assert not process.is_running()
    assert not reached.exists()


def test_settings_of_any_size_reach_a_host(tmp_path):
    """One argument of a command is limited to 128 KiB, and a part may have many operators."""
    many = {f"stream_{number:06}": ("shout",) for number in range(20_000)}
    with Controller(tmp_path / "all") as controller:
        controller.start(
            replace(settings(tmp_path / "one"), readers={"in": ("shout",), **many})
        )
        assert asked(controller).state.running == 1


def asked(controller):
    """Return what the operator's host reports when it is asked."""
    assert controller.ask() == ["part"]
    while "part" not in controller.reported():
        time.sleep(0.005)
    return controller.tallies()["part"][-1].operators["shout"]


def test_operators_of_one_host_are_scaled_each_and_hosts_apart(tmp_path):
    with Controller(tmp_path / "all") as controller:
        controller.start(settings(tmp_path / "one", operators=("shout", "call")))
        controller.start(settings(tmp_path / "two", name="other", operators=("sing",)))
        for operator, processors in (("shout", 3), ("call", 2), ("sing", 4)):
            controller.scale(operator, processors)
            controller.await_running(operator, processors)
        assert [controller.running(name) for name in ("shout", "call", "sing")] == [3, 2, 4]
        assert controller.pid("shout") == controller.pid("call") != controller.pid("sing")
        assert sorted(controller.ask()) == ["other", "part"]
        while len(controller.reported()) < 2:
            time.sleep(0.005)
        tallies = controller.tallies()
        assert tallies["part"][-1].operators.keys() == {"shout", "call"}
        assert tallies["other"][-1].operators["sing"].state.wanted == 4


def test_a_host_that_was_killed_is_seen_and_can_be_started_again(tmp_path):
    with Controller(tmp_path / "all") as controller:
        controller.start(settings(tmp_path / "one"))
        psutil.Process(controller.pid("shout")).kill()
        while not controller.ended():
            time.sleep(0.005)
        assert controller.ended() == {"part": "its host exited with status -9"}
        controller.start(settings(tmp_path / "one", processors=3))
        controller.await_running("shout", 3)
        assert controller.ended() == {}


def test_a_host_whose_store_became_shorter_is_said_to_have_ended_by_that(tmp_path):
    """Reading behind the end of a mapped file is a signal, and no error."""
    with Controller(tmp_path / "all") as controller:
        controller.start(settings(tmp_path / "one"))
        os.kill(controller.pid("shout"), signal.SIGBUS)
        while not controller.ended():
            time.sleep(0.005)
        (told,) = controller.ended().values()
        assert "status -7 (SIGBUS: its state store was truncated" in told


def test_what_is_wanted_before_a_host_has_come_is_told_to_it_then(tmp_path):
    with Controller(tmp_path / "all") as controller:
        controller.launch(settings(tmp_path / "one"))
        controller.scale("shout", 4)
        controller.await_running("shout", 4)


def test_a_stranger_is_not_heard(tmp_path):
    """Whoever cannot say what a host of ours was told is no host of ours."""
    with Controller(tmp_path / "all") as controller:
        controller.start(settings(tmp_path / "one"))
        for messages in (
            [HostHello("part", 1, "x", "guess")],
            [Broken("part", "no")],
            [AllRead()],
        ):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(tmp_path / "all" / "controller.sock"))
                stranger.sendall(b"".join(map(framed, messages)))
                stranger.settimeout(10)
                assert stranger.recv(1) == b""
        assert asked(controller).state.wanted == 1


def test_what_user_code_prints_is_kept(tmp_path):
    logs = tmp_path / "logs"
    with (
        Controller(tmp_path / "all", logs=logs) as controller,
        pytest.raises(EngineError, match="did not start"),
    ):
        controller.start(settings(tmp_path / "one", argument="never", logs=logs))
    assert "no model to be found" in (logs / "shout.log").read_text()
    assert (logs / "hosts.log").exists()


def test_a_host_that_cannot_start_all_is_waited_for_as_far_as_it_gets(tmp_path):
    with Controller(tmp_path / "all") as controller:
        controller.launch(
            settings(
                tmp_path / "one", job="unit.spark.host.jobs:few", argument="3", processors=50
            )
        )
        controller.await_running("shout", 50)
        while controller.running("shout") < 3:
            time.sleep(0.005)
        state = asked(controller).state
        assert (state.wanted, state.running) == (50, 3)
        assert "ulimit -u" in state.missing


def test_a_host_that_breaks_is_said_to_be_broken(tmp_path):
    with (
        Controller(tmp_path / "all") as controller,
        pytest.raises(EngineError, match=r"shout: .*(did not start|ended)"),
    ):
        controller.start(settings(tmp_path / "one", argument="never"))


def test_a_job_that_is_not_there_is_said(tmp_path):
    with (
        Controller(tmp_path / "all") as controller,
        pytest.raises(EngineError, match="cannot be loaded"),
    ):
        controller.start(settings(tmp_path / "one", job="unit.spark.host.jobs:nothing"))


def test_waiting_has_an_end(tmp_path):
    with Controller(tmp_path / "all") as controller:
        controller.start(settings(tmp_path / "one"))
        began_s = time.monotonic()
        with pytest.raises(EngineError, match=r"of 99 processors are ready after 0\.3 s"):
            controller.await_running("shout", 99, patience_s=0.3)
        assert time.monotonic() - began_s >= 0.3


def test_a_host_that_is_not_there_cannot_be_scaled(tmp_path):
    with (
        Controller(tmp_path / "all") as controller,
        pytest.raises(EngineError, match="has no host"),
    ):
        controller.scale("shout", 3)


def test_only_the_owner_may_command(tmp_path):
    with Controller(tmp_path / "all"):
        assert (tmp_path / "all").stat().st_mode & 0o777 == 0o700

"""A name belongs to one run at a time, and what opens its socket to one user."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from processes import started
from sojourn.errors import BadApplication, BadFile, EngineError
from sojourn.service.folders import (
    Entry,
    exit_status,
    private_folder,
    refuse_others,
    state_folder,
)
from sojourn.service.folders import places as known_places
from sojourn.service.name_lock import NameLock


@pytest.fixture(autouse=True)
def own(places):
    """Come before all that writes there."""
    return places


HOLDS = """
import pathlib, sys
from sojourn.service.name_lock import NameLock
state, logs = pathlib.Path("s"), pathlib.Path("l")
with NameLock("words", address="words:app", state=state, logs=logs) as name:
    name.socket.touch()
    print(name.socket, flush=True)
    sys.stdin.read()
"""


def claim(name="words"):
    return NameLock(name, address="words:app", state=Path("state"), logs=Path("state/logs"))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def other():
    """Return a process that has claimed `words`, and where its socket is."""
    with started(
        [sys.executable, "-c", HOLDS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process, Path(process.stdout.readline().strip())


def test_only_the_owner_may_enter_and_read_the_token(places):
    with claim() as held:
        assert held.folder == places / "words"
        assert (mode(places), mode(held.folder)) == (0o700, 0o700)
        assert mode(held.folder / "token") == mode(held.folder / "running.json") == 0o600
        assert (held.folder / "token").read_text() == held.token
        entry = Entry.read(held.folder)
        assert (entry.name, entry.pid, entry.socket) == ("words", os.getpid(), str(held.socket))
        assert Path(entry.state).is_absolute()


def test_every_run_has_a_token_of_its_own():
    with claim() as first, claim("other") as second:
        assert first.token != second.token
        assert len(first.token) == 64


def test_leaving_it_leaves_nothing_that_could_be_used():
    with claim() as held:
        held.socket.touch()
    assert {path.name for path in held.folder.iterdir()} == {"lock", "ended.json"}


def test_how_it_ended_is_left_for_the_command_that_stopped_it():
    with claim() as held:
        assert exit_status(held.folder, os.getpid()) is None
        held.exit_status = 0
    assert exit_status(held.folder, os.getpid()) == 0
    assert exit_status(held.folder, os.getpid() + 1) is None, "another process was killed"
    with pytest.raises(KeyboardInterrupt), claim() as held:
        raise KeyboardInterrupt
    assert exit_status(held.folder, os.getpid()) == 130


def test_a_second_run_of_the_name_is_refused_and_told_who_has_it(places, other):
    process, _ = other
    with (
        pytest.raises(EngineError, match=f"words is already running, pid {process.pid};"),
        claim(),
    ):
        pass
    with claim("other"):
        pass
    assert Entry.read(places / "words").pid == process.pid


def test_it_is_refused_in_the_same_process_too():
    with claim(), pytest.raises(EngineError, match=f"pid {os.getpid()}"), claim():
        pass


def test_what_a_killed_run_left_is_cleaned(other):
    process, socket = other
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert socket.exists()
    with claim() as held:
        assert not held.socket.exists()
        assert Entry.read(held.folder).pid == os.getpid()


def test_where_the_path_is_too_long_the_socket_is_elsewhere(tmp_path, monkeypatch):
    """A Unix socket's path has room for 107 bytes, and a home may be deep."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with claim() as held:
        assert held.folder == deep / "sojourn" / "words"
        assert held.socket.parent.parent == Path(tempfile.gettempdir())
        assert mode(held.socket.parent) == 0o700
        assert Entry.read(held.folder).socket == str(held.socket)
    assert not held.socket.parent.exists()


def test_the_socket_elsewhere_of_a_killed_run_is_cleaned(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with started(
        [sys.executable, "-c", HOLDS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        socket = Path(process.stdout.readline().strip())
    assert socket.exists()
    with claim() as held:
        assert held.socket != socket
        assert not socket.parent.exists()


def test_where_no_path_is_short_enough_it_says_so(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(BadFile, match=r"107 bytes, .* set TMPDIR"), claim():
        pass
    assert not list(deep.glob("sojourn-*"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with claim():  # and the name is free
        pass


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 101])
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(BadApplication, match="is not a valid name"):
        claim(name)


def test_a_folder_that_others_may_enter_is_closed_to_them(places):
    places.mkdir()
    places.chmod(0o777)
    with claim():
        assert mode(places) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(places, tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    places.symlink_to(tmp_path / "mine")
    with pytest.raises(BadFile, match="is a symbolic link"), claim():
        pass
    assert mode(tmp_path / "mine") == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_refused(places):
    places.mkdir(mode=0o700)
    os.chown(places, 65534, 65534)
    with pytest.raises(BadFile, match="belongs to user 65534"), claim():
        pass


def test_what_is_not_there_or_in_the_way_is_named(tmp_path):
    with pytest.raises(BadFile, match="cannot be read"):
        refuse_others(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be created"):
        private_folder(tmp_path / "file" / "inside")


def test_places_follow_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    kept = tmp_path / ".local" / "state" / "sojourn"
    assert known_places() == (kept / "run",)
    assert state_folder("words") == kept / "state" / "words"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert known_places() == (tmp_path / "x" / "sojourn" / "run",)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "not there"))
    assert known_places() == (tmp_path / "x" / "sojourn" / "run",)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert known_places() == (tmp_path / "sojourn", tmp_path / "x" / "sojourn" / "run")

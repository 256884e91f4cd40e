import os
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from processes import started
from sojourn.spark.driver.jvm import watchdog
from sojourn.spark.driver.jvm.child_process import ChildProcess
from sojourn.spark.driver.jvm.watchdog import keep

DEADLINE_S = 120
SLEEP = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(1000)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP[-1],
)


def until(true):
    """Wait until *true* returns something, and return it."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not (found := true()):
        assert time.monotonic() < deadline_s
        select.select([], [], [], 0.02)
    return found


def group_is_gone(group):
    """Return whether no process of the group runs; the dead may wait to be buried."""
    ps = subprocess.run(
        ["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    states = [line.split() for line in ps.stdout.splitlines()]
    return not any(int(pgid) == group and state[0] != "Z" for pgid, state in states)


@pytest.fixture
def lifeline():
    read, write = os.pipe()
    yield read, write
    os.close(read)


def test_the_status_of_a_command_that_ends_by_itself_is_kept(lifeline):
    read, write = lifeline
    status = keep(
        [sys.executable, "-c", "raise SystemExit(7)"],
        parent=os.getppid(),
        lifeline=read,
        grace_s=9,
    )
    os.close(write)
    assert status == 7


def test_a_command_ends_when_the_lifeline_is_closed(lifeline):
    read, write = lifeline
    os.close(write)
    assert keep(SLEEP, parent=os.getppid(), lifeline=read, grace_s=9) == -signal.SIGTERM


def test_a_command_that_ignores_to_be_ended_is_killed(lifeline):
    read, write = lifeline
    os.close(write)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # and a child does likewise
    try:
        status = keep(SLEEP, parent=os.getppid(), lifeline=read, grace_s=0.1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == -signal.SIGKILL


def test_a_command_ends_when_the_parent_is_another(lifeline):
    """The lifeline may be held open by a child that the parent forked."""
    read, write = lifeline
    assert keep(SLEEP, parent=-1, lifeline=read, grace_s=9) == -signal.SIGTERM
    os.close(write)


def test_a_watchdog_passes_the_status_on_as_a_shell_does(monkeypatch, tmp_path):
    def killed(*_arguments, **_options):
        return -signal.SIGKILL

    monkeypatch.setattr(watchdog, "keep", killed)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "folder").mkdir()
    assert watchdog.main([str(os.getppid()), "1", str(tmp_path / "folder"), "x"]) == 137
    assert (tmp_path / "folder").exists()
    assert watchdog.main(["-1", "1", str(tmp_path / "folder"), "x"]) == 137
    assert not (tmp_path / "folder").exists()


@pytest.fixture
def child(tmp_path):
    """Return what keeps a command, in the test's folder, until the test ends."""
    with ExitStack() as stack:

        def keeping(command, *, grace_s, **slack):
            log = tmp_path / "log"
            running = ChildProcess(command, folder=tmp_path, log=log, grace_s=grace_s, **slack)
            stack.callback(running.stop)
            until(lambda: log.read_text() == "up\n")
            return running

        yield keeping


def test_what_ignores_to_be_ended_is_killed(child):
    running = child(STUBBORN, grace_s=0.1)
    running.stop()
    assert running.status == 128 + signal.SIGKILL
    assert group_is_gone(running.group)


def test_stopping_twice_is_stopping_once(child):
    running = child(SLEEP, grace_s=9)
    running.stop()
    running.stop()
    assert running.wait() == 128 + signal.SIGTERM


def test_a_watchdog_that_hangs_is_killed_with_what_it_keeps(child):
    running = child(SLEEP, grace_s=0, slack_s=0.1)
    os.kill(running.group, signal.SIGSTOP)
    running.stop()
    until(lambda: group_is_gone(running.group))


def test_a_watchdog_that_is_told_to_end_ends_what_it_keeps(child):
    running = child(SLEEP, grace_s=9)
    os.kill(running.group, signal.SIGTERM)
    assert running.wait() == 128 + signal.SIGTERM
    until(lambda: group_is_gone(running.group))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of it")
def test_not_even_a_killed_watchdog_leaves_anything_behind(child):
    running = child(SLEEP, grace_s=9)
    os.kill(running.group, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    until(lambda: group_is_gone(running.group))


FORKING = """
import os, sys, time
from pathlib import Path
from sojourn.spark.driver.jvm.child_process import ChildProcess
folder = Path(sys.argv[1])
child = ChildProcess(sys.argv[2:], folder=folder, log=folder / "log", grace_s=9, temporary=True)
if os.fork() == 0:
    os.close(1)
    time.sleep(1000)  # and holds the lifeline open
print(child.group, flush=True)
time.sleep(1000)
"""


def test_nothing_is_left_of_a_killed_process_even_if_it_forked(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    with started(
        [sys.executable, "-c", FORKING, folder, *SLEEP],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as parent:
        try:
            group = int(parent.stdout.readline())
            until(lambda: (folder / "log").read_text() == "up\n")
            parent.kill()
            parent.wait()
            until(lambda: group_is_gone(group))
            assert not folder.exists()
        finally:
            os.killpg(parent.pid, signal.SIGKILL)

"""One application uses a state at a time, and all that it has started counts."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from sojourn.errors import BadFile, EngineError
from sojourn.spark.driver.jvm.child_process import ChildProcess
from sojourn.spark.driver.state.state_lock import StateLock

# takes the lock, starts a child that inherits it, and waits to be killed
DRIVER = """
import pathlib, subprocess, sys
from sojourn.spark.driver.state.state_lock import StateLock
with StateLock(pathlib.Path(sys.argv[1])) as lock:
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.file]
    )
    print(child.pid, flush=True)
    input()
"""


@contextmanager
def driver(folder):
    """Run a driver, and yield it with what it has started."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        child = psutil.Process(int(process.stdout.readline()))
        child.suspend()  # or it would end as soon as it is alone
        try:
            yield process, child
        finally:
            process.kill()
            if child.is_running():
                child.kill()


def test_a_run_that_goes_on_is_named_at_once(tmp_path):
    with driver(tmp_path) as (process, _child):
        why = rf"uses the state folder {tmp_path} \(pid {process.pid}\); stop it first"
        with pytest.raises(EngineError, match=why), StateLock(tmp_path):
            pass


def test_two_engines_of_one_process_are_two(tmp_path):
    with (
        StateLock(tmp_path),
        pytest.raises(EngineError, match=rf"another process uses .* \(pid {os.getpid()}\)"),
        StateLock(tmp_path),
    ):
        pass
    with StateLock(tmp_path) as lock:
        assert lock.file >= 0


def test_what_a_killed_run_has_left_is_waited_for(tmp_path):
    with driver(tmp_path) as (process, child):
        process.kill()
        process.wait()
        told = []

        def hear(line):
            assert child.is_running()
            told.append(line)
            child.kill()

        with StateLock(tmp_path, hear):
            assert told == ["waiting for Java and Kafka of the previous run to exit"]
            holder = json.loads((tmp_path / "engine.lock").read_text())
            assert holder["pid"] == os.getpid()


def test_what_does_not_end_is_named(tmp_path):
    with driver(tmp_path) as (process, child):
        process.kill()
        process.wait()
        why = rf"of a previous run still use .* \(pid {child.pid}\); end them first"
        with pytest.raises(EngineError, match=why), StateLock(tmp_path, patience_s=0.0):
            pass


def test_a_process_of_the_same_number_is_not_taken_for_the_driver(tmp_path):
    """Numbers of processes are used again, soon so in a container."""
    with driver(tmp_path) as (process, child):
        process.kill()
        process.wait()
        (tmp_path / "engine.lock").write_text(json.dumps({"pid": os.getpid(), "since": 1.0}))
        with StateLock(tmp_path, lambda _line: child.kill()):
            pass


def test_a_lock_that_is_being_written_is_waited_for(tmp_path):
    with driver(tmp_path) as (process, child):
        (tmp_path / "engine.lock").write_text("")

        def end(_line):
            process.kill()
            child.kill()

        with StateLock(tmp_path, end):
            pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="file: cannot be used: File exists"):
        StateLock(tmp_path / "file").__enter__()


def test_it_has_no_file_unless_it_is_taken(tmp_path):
    with pytest.raises(EngineError, match="is not locked"):
        _ = StateLock(tmp_path).file


def test_a_watchdog_holds_it_for_as_long_as_its_command_runs(tmp_path):
    with StateLock(tmp_path) as lock:
        command = [sys.executable, "-c", "import time; time.sleep(1000)"]
        child = ChildProcess(
            command, folder=tmp_path, log=tmp_path / "log", grace_s=9, inherits=[lock.file]
        )
    try:
        (tmp_path / "engine.lock").write_text(json.dumps({"pid": 1, "since": 1.0}))
        with (
            pytest.raises(EngineError, match="still use the state folder"),
            StateLock(tmp_path, patience_s=0),
        ):
            pass
    finally:
        child.stop()
    with StateLock(tmp_path):
        pass

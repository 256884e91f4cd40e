"""What a task and the agent that it starts say to each other."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from sojourn.errors import EngineError
from sojourn.spark.driver.nodes import agent_start
from sojourn.spark.driver.nodes.agent_start import AgentCommand, start_agent
from sojourn.spark.driver.nodes.executors import ExecutorProcess

DEADLINE_S = 20.0
SECRET = "do not tell"
READY = """
import json, os, sys, time
told = sys.stdin.read()
open("told", "w").write(told)
open("pythonpath", "w").write(os.environ["PYTHONPATH"])
print("to the log", file=sys.stderr, flush=True)
print("ready", flush=True)
time.sleep(600)
"""


def await_end(pid):
    until_s = time.monotonic() + DEADLINE_S
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until_s
        time.sleep(0.005)


@pytest.fixture
def watched(monkeypatch):
    """A process that stands for the JVM of executor 7: outside of Spark there is none."""
    with subprocess.Popen(["sleep", "600"]) as process:
        found = ExecutorProcess("7", process.pid)
        monkeypatch.setattr(agent_start, "executor_process", lambda: found)
        yield process
        process.kill()


@pytest.fixture
def start(tmp_path, watched):
    """Starts an agent with a program; all of them are ended in the end."""
    assert watched.poll() is None
    begun = []

    def run(program, patience_s=DEADLINE_S):
        agent = AgentCommand(
            settings={"secret": SECRET, "hosts": ["left:1"]},
            command=[sys.executable, "-c", program],
            patience_s=patience_s,
        )
        begun.append(start_agent(agent, tmp_path))
        return begun[-1]

    yield run
    for pid in set(begun):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        await_end(pid)


def test_it_is_told_its_settings_the_executor_and_what_to_watch(start, tmp_path, watched):
    start(READY)
    told = json.loads((tmp_path / "told").read_text())
    assert told == {
        "secret": SECRET,
        "hosts": ["left:1"],
        "executor": "7",
        "watch": watched.pid,
    }


def test_it_can_import_what_the_task_can(start, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, "/shipped.zip"])
    start(READY)
    assert "/shipped.zip" in (tmp_path / "pythonpath").read_text().split(os.pathsep)


def test_its_secret_is_nowhere_that_others_look(start, tmp_path):
    process = psutil.Process(start(READY))
    assert SECRET not in " ".join(process.cmdline())
    assert SECRET not in str(process.environ())
    assert (tmp_path / "agent.log").read_text() == "to the log\n"
    assert SECRET not in repr(AgentCommand(settings={"secret": SECRET}))


def test_it_is_no_child_of_the_task_and_leads_a_session_of_its_own(start):
    """Spark ends its Python workers as a group, and they reap nothing."""
    pid = start(READY)
    assert os.getsid(pid) == pid
    assert psutil.Process(pid).ppid() != os.getpid()


def test_there_is_never_a_second_one(start):
    """The driver may not have learned that the first has started."""
    first = start(READY)
    assert start(READY) == first


def test_one_that_has_ended_is_replaced(start):
    first = start(READY)
    os.kill(first, signal.SIGKILL)
    await_end(first)
    second = start(READY)
    assert second != first


def test_what_an_ended_one_has_left_running_is_waited_for(start):
    child = """
import subprocess, sys
subprocess.Popen(["sleep", "600"], close_fds=False)
"""
    first = start(child + READY)
    os.kill(first, signal.SIGKILL)
    await_end(first)
    with pytest.raises(EngineError, match="processes of its previous agent are still running"):
        start(READY)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('failed: no way to the host')", "did not start: no way to the host"),
        ("import nosuch_module", "No module named 'nosuch_module'"),
        ("print('what')", "did not start: what"),
        ("", "did not start: it printed nothing"),
    ],
)
def test_why_it_did_not_start_is_said(start, program, problem):
    with pytest.raises(EngineError, match=problem):
        start(program)


def test_one_that_does_not_get_ready_is_ended_with_all_it_has_started(start, tmp_path):
    program = """
import subprocess, time
child = subprocess.Popen(["sleep", "600"])
open("pid.new", "w").write(str(child.pid))
import os; os.rename("pid.new", "pid")
time.sleep(600)
"""
    with pytest.raises(EngineError, match=r"did not get ready within 1 s; see .*agent\.log"):
        start(program, patience_s=1)
    await_end(int((tmp_path / "pid").read_text()))


def test_a_command_that_is_not_there_is_named(tmp_path, watched):
    assert watched.poll() is None
    agent = AgentCommand(settings={}, command=["/nosuch/agent"])
    with pytest.raises(EngineError, match="/nosuch/agent cannot be run: No such"):
        start_agent(agent, tmp_path)

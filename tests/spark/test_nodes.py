"""Executors of a real cluster as nodes: visited, with agents, given back and asked for."""

import json
import shutil
import sys
import threading
import time
from functools import partial
from pathlib import Path

import psutil
import pyspark
import pytest

from sojourn.errors import BadFile, EngineError
from sojourn.spark.agent.agent import node_name
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.master import Master
from sojourn.spark.driver.nodes.agent_start import AgentCommand, agent_starts
from sojourn.spark.driver.nodes.agents import Agents
from sojourn.spark.driver.nodes.executors import executor_process, executors, on_executor
from sojourn.spark.driver.nodes.negotiator import SparkNegotiator
from sojourn.spark.driver.state.shared_folder import SharedFolder

pytestmark = pytest.mark.spark
PATIENCE_S = 120.0
# What an agent does: reads its settings, says one line, and ends with its executor.
AGENT = """
import json, os, sys, time
told = json.load(sys.stdin)
with open(sys.argv[1] + "/" + told["executor"], "w") as file:
    json.dump({"pid": os.getpid(), "watch": told["watch"], "secret": told["secret"]}, file)
print("ready", flush=True)
while os.path.exists(f"/proc/{told['watch']}"):
    time.sleep(0.02)
"""


def await_that(condition):
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def runs(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def spark(jars, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    master = Master(
        url="local-cluster[2,2,1024]",
        spark={"spark.driver.host": "127.0.0.1", "spark.executor.memory": "600m"},
    )
    session = new_session("nodes", jars=jars, slots=1, master=master)
    application = session.sparkContext.applicationId
    await_that(lambda: len(executors(session)) == 2)
    yield session
    end_session(session)
    # such a cluster has its folders in that of Spark
    folder = Path(pyspark.__file__).parent / "work" / application
    shutil.rmtree(folder, ignore_errors=True)


def held(started, go_on):
    """Return what holds a slot until it may go on; inside, so that Spark can send it."""

    def hold():
        Path(started).touch()
        while not Path(go_on).exists():
            time.sleep(0.02)
        return executor_process().id

    return hold


def check_functions(session, tmp_path):
    one, two = executors(session)
    assert (one.cores, two.cores) == (2, 2)
    for each in (one, two):
        found = on_executor(session, each, executor_process, PATIENCE_S)
        assert found.id == each.id
        assert f"--executor-id {each.id}" in " ".join(psutil.Process(found.pid).cmdline())
    with pytest.raises(EngineError, match=rf"executor {one.id} on .*ZeroDivisionError"):
        on_executor(session, one, partial(divmod, 1, 0), PATIENCE_S)
    # one slot of the executor is held by a long task, and the other is enough
    started, go_on, where = tmp_path / "started", tmp_path / "go on", []
    hold = held(str(started), str(go_on))
    thread = threading.Thread(
        target=lambda: where.append(on_executor(session, one, hold, PATIENCE_S))
    )
    thread.start()
    await_that(started.exists)
    assert on_executor(session, one, executor_process, PATIENCE_S).id == one.id
    go_on.touch()
    thread.join()
    assert where == [one.id]


def check_shared_folder(session, tmp_path):
    """A folder of the process is what two machines that share nothing have."""
    shared, there = SharedFolder(session, tmp_path, ["sums"]), executors(session)
    shared.check(there)
    assert list(tmp_path.iterdir()) == []
    own = SharedFolder(session, Path("/proc/self/cwd"), ["sums", "sink counts"])
    each = [
        f"{node_name(executor.id)} on .*: a different folder is mounted there"
        for executor in there
    ]
    which = "tasks of sums, sink counts write there"
    with pytest.raises(BadFile, match=f"cwd: is not shared by {', '.join(each)}; {which}"):
        own.check(there)
    # of nodes that come later it is told too, and nothing is started there
    started = []
    starts = shared.before(lambda executor, _stopping: started.append(executor))
    starts(there[0], threading.Event())
    assert started == [there[0]]
    own.check([])
    with pytest.raises(EngineError, match=f"cwd is not shared by {each[0]}; {which}"):
        own.before(starts)(there[0], threading.Event())
    assert started == [there[0]]


def test_executors_are_nodes_that_come_and_go(spark, tmp_path):
    (shared := tmp_path / "shared").mkdir()
    check_shared_folder(spark, shared)
    check_functions(spark, tmp_path)
    one, two = executors(spark)
    notes = tmp_path / "notes"
    notes.mkdir()
    command = AgentCommand(
        settings={"secret": "hush"}, command=[sys.executable, "-c", AGENT, str(notes)]
    )

    def note(executor_id):
        return json.loads((notes / executor_id).read_text())

    look = partial(executors, spark)
    with Agents(look, agent_starts(spark, command)) as agents:
        await_that(lambda: len(agents.ready) == 2)
        first = note(one.id)
        assert first["secret"] == "hush"
        assert runs(first["pid"])
        negotiator = SparkNegotiator(spark)
        assert negotiator.wanted == 2
        with pytest.raises(EngineError, match="no executor 99 to release"):
            negotiator.give_back(["99"])
        negotiator.give_back([one.id])
        negotiator.give_back([one.id])
        assert negotiator.wanted == 1
        await_that(lambda: agents.ready == (two,))
        await_that(lambda: not runs(first["pid"]))
        with pytest.raises(EngineError, match="0 nodes are fewer than the 1 wanted"):
            negotiator.ask(0)
        negotiator.ask(2)
        negotiator.ask(2)
        await_that(lambda: len(agents.ready) == 2)
        # had Spark replaced what was given back, or been asked twice, there would be more
        (new,) = {each.id for each in executors(spark)} - {two.id}
        assert agents.problems == {}
    assert {each.name for each in notes.iterdir()} == {one.id, two.id, new}

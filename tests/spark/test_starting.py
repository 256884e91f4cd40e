"""How an application starts on what another start has left, on real Spark and Kafka."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer

from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.errors import EngineError
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.topology import Arrival, Operator, Topology
from sojourn_trial.kills.victims import found, running
from spark.loaded import Loaded, as_file, load_of

pytestmark = pytest.mark.spark
DEADLINE_S = 120.0
HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def importable():
    """Let hosts find the applications of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        patch.setenv(
            "PYTHONPATH",
            os.pathsep.join([str(HERE), os.environ["PYTHONPATH"]])
            if "PYTHONPATH" in os.environ
            else str(HERE),
        )
        yield


def send(servers, topic, numbers):
    producer = Producer({"bootstrap.servers": servers})
    for number in numbers:
        producer.produce(topic, json.dumps({"number": number}).encode())
    producer.flush()


def messages(servers, topic):
    """Yield all messages of a topic as they come, and None when there is none for a moment."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": str(uuid.uuid4()),
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    until_s = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < until_s:
            message = consumer.poll(0.2)
            yield message if message is not None and message.error() is None else None
    finally:
        consumer.close()


def arrived(servers, topic, last):
    """Return the numbers in a topic, when *last* is there."""
    found = []
    with closing(messages(servers, topic)) as read:
        for message in read:
            found += [json.loads(message.value())["number"]] if message else []
            if last in found:
                return found
    raise AssertionError(found)


def eventually(condition, what):
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.05)


def is_there(process):
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_start_that_failed_has_begun_nothing(servers, tmp_path, monkeypatch):
    """The one after it does not take what lies between operators for its own."""
    import starts  # noqa: PLC0415 - found only now

    ready, state = tmp_path / "ready", tmp_path / "state"
    monkeypatch.setenv("STARTS_WHEN", str(ready))
    Cluster(servers).ensure(["starts.numbers", "starts.first"], 1)
    send(servers, "starts.first", [900, 901])  # which another run has left
    settings = SparkSettings(servers=servers, state=state, batch_s=5)
    topology = starts.app.topology({"numbers": 1})
    with SparkEngine(starts.app, "starts:app", settings) as engine:
        with pytest.raises(EngineError, match=r"^first: "):
            engine.start(topology, Plan.here({"first": 1, "second": 1}))
        assert not (state / "application.json").exists()
        ready.touch()
        send(servers, "starts.first", [902])
        engine.start(topology, Plan.here({"first": 1, "second": 1}))
        send(servers, "starts.numbers", [1, 2, 3])
        assert arrived(servers, "starts.second", 3) == [1, 2, 3]
        other = SparkEngine(starts.app, "starts:app", settings)
        with pytest.raises(EngineError, match=rf"\(pid {os.getpid()}\); stop it first"):
            other.start(topology, Plan.here({"first": 1, "second": 1}))


CHAIN = Topology(
    name="ending",
    arrivals=(Arrival(name="in", per_s=20.0, into="slow"),),
    operators=(
        Operator(name="slow", service_s=1.0, emits={"quick": 1}),
        Operator(name="quick", service_s=0.005),
    ),
)
PROCESSORS = {"slow": 30, "quick": 1}


@pytest.fixture
def ending(servers, tmp_path):
    """Return an application to which records come without a pause."""
    address = as_file(CHAIN, tmp_path)
    made = Loaded(load(address), address, servers)
    Cluster(servers).ensure([made.app.topic("in")], 1)
    with load_of(CHAIN, made):
        yield made


def at(servers, topic):
    """Return the offset that comes next in a topic."""
    return Offsets(Cluster(servers).client(), {topic: 1}).partitions()[topic][0]


def arrived_ids(servers, enough):
    """Return the ids of what has arrived, when *enough* is true of their roots' offsets."""
    ids, roots = [], set()
    with closing(messages(servers, "ending.quick")) as read:
        for message in read:
            if message:
                told = dict(message.headers())
                ids.append(told["sojourn-id"])
                roots.add(int(told["sojourn-root"].rpartition(b"/")[2]))
            if enough(roots):
                return ids
    raise AssertionError(sorted(roots))


def all_ids(ending):
    """Return the ids of all that arrives from the first root on, when it is there."""
    last = at(ending.servers, "ending.in")
    return arrived_ids(
        ending.servers,
        lambda roots: bool(roots) and set(range(min(roots), last)) <= roots,
    )


@pytest.mark.timeout(600)
def test_a_long_batch_is_ended_early_and_nothing_is_lost_or_comes_twice(ending, tmp_path):
    """A batch of an hour would outlast the test."""
    settings = {"batch_s": 3600.0, "state": tmp_path / "state"}
    with ending.engine(**settings) as engine:
        engine.start(CHAIN, Plan.here(PROCESSORS))
        eventually(lambda: at(ending.servers, "ending.quick") > 20, "records arrive")
        told = []
        engine.drain(told.append)
        assert "to end (at most" in told[0]
        assert told[-1] == "drained"
        assert engine.uncommitted() == 0
    with ending.engine(**settings) as engine:
        engine.start(CHAIN, Plan.here(PROCESSORS))
        ids = all_ids(ending)
        assert len(ids) == len(set(ids))


def test_an_idle_application_that_is_drained_repeats_nothing(servers, tmp_path):
    """Nor does it wait for the end of a batch, or leave a record for the next start to read."""
    topology = replace(CHAIN, name="idle")
    address = as_file(topology, tmp_path)
    idle = Loaded(load(address), address, servers)
    Cluster(servers).ensure([idle.app.topic("in")], 1)
    state, told = tmp_path / "state", []
    with idle.engine(batch_s=5.0, state=state) as engine:
        engine.start(topology, Plan.here({"slow": 1, "quick": 1}))
        eventually(lambda: Checkpoints(state).commits("slow") > 0, "a batch is committed")
        engine.drain(told.append)
        assert told == ["drained"]
        assert engine.uncommitted() == 0
    assert at(servers, "idle.retries") == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_query_that_fails_in_a_drain_works_on_what_it_had_taken(ending, tmp_path):
    """Its batch begins anew, and must not end before it has read all of that again."""
    settings = {"batch_s": 20.0, "state": tmp_path / "state"}
    killed = []

    def kill_workers(_progress):
        if not killed:
            children = psutil.Process().children(recursive=True)
            killed.extend(found([running(child) for child in children], "worker"))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    with ending.engine(**settings) as engine:
        engine.start(CHAIN, Plan.here(PROCESSORS))
        eventually(lambda: at(ending.servers, "ending.quick") > 20, "records arrive")
        engine.drain(kill_workers)
        assert killed
        assert sum(engine.health().restarts.values()) > 0
        assert engine.uncommitted() == 0
    with ending.engine(**settings) as engine:
        engine.start(CHAIN, Plan.here(PROCESSORS))
        assert all_ids(ending)


def test_a_start_waits_for_java_of_one_that_was_killed_and_takes_over_its_state(servers):
    import copies  # noqa: PLC0415

    Cluster(servers).ensure(["copies.numbers"], 1)
    send(servers, "copies.numbers", range(7))
    with tempfile.TemporaryDirectory() as folder:  # with a short name, as sockets need it
        state, temporary = Path(folder, "state"), Path(folder, "tmp")
        temporary.mkdir()
        driver = subprocess.Popen(
            [sys.executable, HERE / "copies.py", servers, state],
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "TMPDIR": str(temporary),
                "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temporary}",
            },
            text=True,
        )
        family = []
        try:
            assert driver.stdout.readline() == "started\n"
            send(servers, "copies.numbers", range(7, 10))
            assert arrived(servers, "copies.copy", 9) == [7, 8, 9]
            family = psutil.Process(driver.pid).children(recursive=True)
            java = next(process for process in family if process.name() == "java")
            java.suspend()  # or it might end before we look
            driver.kill()
            driver.wait()
            told = []

            def wait(line):
                if not told:
                    assert is_there(java)
                    java.resume()
                told.append(line)

            send(servers, "copies.numbers", [10])
            with copies.engine(servers, state, wait) as engine:
                engine.start(copies.app.topology({"numbers": 1}), Plan.here(copies.ALLOCATION))
                assert told[0] == "waiting for Java and Kafka of the previous run to exit"
                assert not is_there(java)
                assert arrived(servers, "copies.copy", 10)[:3] == [7, 8, 9]
            eventually(lambda: not list(temporary.iterdir()), "its temporary files are gone")
        finally:
            for process in family:
                if is_there(process):
                    process.kill()
            driver.kill()
            driver.wait()
            driver.stdout.close()

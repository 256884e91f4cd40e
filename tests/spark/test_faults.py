"""Whatever is killed, every root arrives; what is refused is refused before anything starts."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer

from sojourn.app.loading import load
from sojourn.errors import ApplicationStopped, BadInput
from sojourn.spark.cluster import Cluster
from sojourn.spark.engine import SparkEngine
from sojourn.spark.kept_state import KeptState
from sojourn.spark.offsets import Offsets
from sojourn.spark.settings import SparkSettings
from sojourn.topology import Arrival, Operator, Topology
from spark.loaded import Loaded, as_file, loaded_broker

pytestmark = pytest.mark.spark
DEADLINE_S = 180.0
CHAIN = Topology(
    name="faults",
    arrivals=(Arrival(name="in", per_s=20.0, into="first"),),
    operators=(
        # long enough that some are in service whenever a batch ends
        Operator(name="first", service_s=0.2, emits={"second": 1}),
        Operator(name="second", service_s=0.02, emits={"third": 1}),
        Operator(name="third", service_s=0.005),
    ),
)
ALLOCATION = {"first": 8, "second": 2, "third": 1}
SOURCE, SINK = "faults.in", "faults.third"


class Sink:
    """What has arrived: how often each id, and of which roots, by their offset."""

    def __init__(self, servers):
        self.servers = servers
        self.ids, self.roots = Counter(), set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "sink",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([SINK])
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                told = dict(message.headers())
                self.ids[told["sojourn-id"].decode()] += 1
                self.roots.add(int(told["sojourn-root"].rpartition(b"/")[2]))
        consumer.close()

    def sent(self):
        """Return the offset of the next root."""
        offsets = Offsets(Cluster(self.servers).client(), {SOURCE: 1})
        return offsets.partitions()[SOURCE][0]

    def await_from(self, first):
        """Return when all roots from *first* until now have arrived."""
        missing = set(range(first, self.sent()))

        def all_arrived():
            missing.difference_update(self.roots)
            return not missing

        eventually(all_arrived, lambda: f"not arrived: {sorted(missing)}")

    def close(self):
        self._ended.set()
        self._thread.join()


def eventually(condition, what):
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s, what() if callable(what) else what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def loaded(jars, tmp_path_factory):
    with loaded_broker(CHAIN, jars, tmp_path_factory.mktemp("loaded")) as made:
        Cluster(made.servers).ensure([SINK], 1)
        yield made


@pytest.fixture(scope="module")
def sink(loaded):
    reading = Sink(loaded.servers)
    yield reading
    reading.close()


@pytest.fixture
def short_folder():
    """Return a folder in which names of sockets are as short as they must be."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def below(process):
    """Return the processes that it has started, and they."""
    return psutil.Process(process).children(recursive=True)


def command(process):
    with suppress(psutil.Error):  # it may end just now
        return process.cmdline()
    return []


def workers():
    """Return Spark's Python workers: forks of their daemon."""
    daemons = {p.pid: p for p in below(os.getpid()) if "pyspark.daemon" in command(p)}
    return [process for process in daemons.values() if process.ppid() in daemons]


def restarted(engine, before):
    return sum(engine.health().restarts.values()) > sum(before.restarts.values())


def test_whoever_is_killed_every_root_arrives(loaded, sink):
    with loaded.engine(batch_s=5.0) as engine:
        engine.start(CHAIN, ALLOCATION)
        first = sink.sent()
        engine.observe(engine.now_s + 1)
        before = engine.health()
        _template, processor, *_ = below(engine.host_pid("second"))
        processor.kill()
        eventually(lambda: not processor.is_running(), "it is noticed")
        sink.await_from(first)
        assert engine.health().restarts == before.restarts  # its host alone deals with it
        assert max(n for i, n in sink.ids.items() if root_of(i) >= first) == 1

        engine.apply({"first": 9, "second": 1, "third": 2})
        for worker in workers():  # some may be idle, left over from an earlier batch
            worker.kill()
        eventually(lambda: restarted(engine, before), "its feed is started again")
        sink.await_from(first)

        engine.apply(ALLOCATION)
        before, host = engine.health(), engine.host_pid("second")
        psutil.Process(host).kill()
        eventually(lambda: restarted(engine, before), "it is started again")
        sink.await_from(first)
        assert engine.host_pid("second") != host
        engine.observe(engine.now_s + 1)
        assert engine.health().running == ALLOCATION
        assert not engine.health().failure


def root_of(identity):
    return int(identity.split("/")[2].split(".")[0])


def test_a_drained_start_repeats_nothing_and_a_killed_one_loses_nothing(
    loaded, sink, tmp_path, short_folder
):
    state = tmp_path / "state"
    with loaded.engine(batch_s=5.0, state=state) as engine:
        engine.start(CHAIN, ALLOCATION)
        first = sink.sent()
        carried = KeptState(state).carried("first")
        eventually(
            lambda: carried.exists() and any(carried.iterdir()), "records are carried over"
        )
        sink.await_from(first)
        engine.observe(engine.now_s + 1)
        assert engine.uncommitted() > 0
        told = []
        engine.drain(told.append)
        assert told[-1] == "drained"
        assert engine.uncommitted() == 0
        assert not any(carried.iterdir())

    driver = subprocess.Popen(
        [
            *(sys.executable, Path(__file__).with_name("driving.py")),
            *(loaded.address, loaded.servers, state),
            *(f"{name}={processors}" for name, processors in ALLOCATION.items()),
        ],
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "TMPDIR": str(short_folder),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={short_folder}",
        },
        text=True,
    )
    try:
        assert driver.stdout.readline() == "started\n"
        sink.await_from(first)
        again = [i for i, n in sink.ids.items() if n > 1 and root_of(i) >= first]
        assert not again
    finally:
        family = below(driver.pid)
        driver.kill()
        driver.wait()
        driver.stdout.close()
    eventually(lambda: not any(map(is_there, family)), "all its processes end")
    eventually(lambda: not list(short_folder.iterdir()), "nothing is left of it")

    with loaded.engine(batch_s=5.0, state=state) as engine:
        engine.start(CHAIN, ALLOCATION)
        sink.await_from(first)


def is_there(process):
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_function_that_raises_stops_the_application_and_the_error_says_where(
    loaded, monkeypatch
):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    app = load("stumbling:app")
    engine = SparkEngine(app, "stumbling:app", SparkSettings(servers=loaded.servers, batch_s=5))
    with engine:
        engine.start(app.topology({"numbers": 1.0}), {"halve": 1})
        producer = Producer({"bootstrap.servers": loaded.servers})
        for seed in (4, 7):
            producer.produce("stumbling.numbers", b'{"seed": %d}' % seed)
        producer.flush()
        with pytest.raises(ApplicationStopped, match="halve") as stopped:
            engine.observe(engine.now_s + DEADLINE_S)
        assert "stumbling.numbers/0/1" in str(stopped.value)
        assert "ValueError: 7 is odd" in str(stopped.value)
        assert engine.health().failure == str(stopped.value)


def test_fewer_slots_than_queries_hold_are_refused(loaded):
    engine = loaded.engine(slots=2)
    with pytest.raises(BadInput, match=r"3 slots are needed .* there are 2; give Spark 3"):
        engine.start(CHAIN, ALLOCATION)
    assert engine.now_s == 0


def test_state_of_an_application_that_read_something_else_is_refused(loaded, tmp_path):
    state = tmp_path / "state"
    KeptState(state).keep(loaded.app, Cluster(loaded.servers).identity())
    changed = Topology(
        name=CHAIN.name,
        arrivals=CHAIN.arrivals,
        operators=(
            Operator(name="first", service_s=0.02, emits={"third": 1}),
            Operator(name="third", service_s=0.005, emits={"second": 1}),
            Operator(name="second", service_s=0.02),
        ),
    )
    address = as_file(changed, tmp_path)
    other = Loaded(load(address), address, loaded.servers)
    with pytest.raises(BadInput, match=r"operator third was .* keep the state elsewhere"):
        other.engine(state=state).start(changed, ALLOCATION)

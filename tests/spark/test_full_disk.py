"""Somebody else fills the disk of the state while an application runs on Spark."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer

from small_disk import mounted
from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.errors import ApplicationStopped
from sojourn.loop import Loop
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.driver.state.key_states import KeyStates
from spark.counting_app import app

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
DEADLINE_S = 240
FULL_S, PATIENCE_S = 60.0, 75.0


class Load:
    """A producer that writes a hundred words a second, while it is entered."""

    def __init__(self, broker):
        self._producer = Producer(broker.cluster.for_clients | {"log_level": 0})
        self.sent = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(DEADLINE_S) == 0

    def _run(self):
        while not self._ended.wait(0.01):
            word = f"word{self.sent.total() % 97}"
            self._producer.produce(app.topic("words"), json.dumps({"word": word}).encode())
            self._producer.poll(0)
            self.sent[word] += 1


class Sink:
    """The numbers at the sink, by word, in any order."""

    def __init__(self, broker):
        told = {"group.id": "test", "auto.offset.reset": "earliest", "log_level": 0}
        self._consumer = Consumer(broker.cluster.for_clients | told)
        self._consumer.subscribe([app.topic("counts")])
        self.numbers = {}

    def read(self):
        while (message := self._consumer.poll(0.1)) is not None:
            if message.error() is None:
                told = json.loads(message.value())
                self.numbers.setdefault(told["word"], []).append(told["n"])

    def number(self):
        return sum(map(len, self.numbers.values()))

    def await_all(self, loop, number):
        until_s = time.monotonic() + DEADLINE_S
        while self.number() < number:
            assert time.monotonic() < until_s, (self.number(), number)
            loop.turn()
            self.read()

    def close(self):
        self._consumer.close()


@contextmanager
def running(jars, folder):
    """Yield a broker, and the engine and loop of an application with its state in *folder*."""
    with Broker(jars=jars) as broker:
        broker.create_topics({app.topic("words"): 2})
        settings = SparkSettings(
            servers=broker.bootstrap_servers,
            kafka=broker.cluster.options,
            state=folder / "state",
            batch_s=5,
            disk_patience_s=PATIENCE_S,
        )
        with SparkEngine(app, "spark.counting_app:app", settings) as engine:
            topology = app.topology({"words": 100.0})
            engine.start(topology, Plan.here({"count": 2}))
            yield broker, engine, Loop(engine, topology, Static(), every_s=1)


def test_a_disk_that_somebody_else_fills_is_outlived_and_nothing_is_lost(jars, tmp_path):
    with mounted(tmp_path / "disk", 64 << 20) as disk:
        with running(jars, disk.folder) as (broker, engine, loop):
            sink = Sink(broker)
            with Load(broker) as load:
                while sink.number() < 500:
                    loop.turn()
                    sink.read()
                disk.fill()
                until_s, reasons, notices = time.monotonic() + FULL_S, set(), set()
                while time.monotonic() < until_s:
                    reasons.add(loop.turn().decision.reason)
                    notices |= set(engine.health().notices)
                    assert not engine.health().failure
                disk.free()
                then_s = time.monotonic() + 5.0
                while time.monotonic() < then_s:
                    loop.turn()
            told = f"the disk of {disk.folder / 'state'} is full; the application waits"
            assert any(notice.startswith(told) for notice in notices)
            assert any("No space left on device; make room in" in each for each in reasons)
            sink.await_all(loop, load.sent.total())
            assert not any("room" in notice for notice in engine.health().notices)
            engine.drain()
            sink.read()
            sink.close()
            exact = {word: list(range(1, n + 1)) for word, n in load.sent.items()}
            assert {word: sorted(n) for word, n in sink.numbers.items()} == exact
        states = KeyStates(disk.folder / "state").every("count")
        kept = {json.loads(state.key)[0]: state.values["n"] for state in states}
        assert kept == load.sent


def test_patience_ends_with_the_reason(jars, tmp_path):
    with (
        mounted(tmp_path / "disk", 64 << 20) as disk,
        running(jars, disk.folder) as (broker, engine, loop),
        Load(broker),
    ):
        for _ in range(10):
            loop.turn()
        disk.fill()
        with pytest.raises(ApplicationStopped, match=r"disk of .* has been full for 7\d s: "):
            list(loop.run(engine.now_s + DEADLINE_S))

"""A start under a backlog, and producers whose clocks are behind: what the loop makes of it."""

import json
import threading
import time
from math import floor
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.drs.caution import Caution
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.loop import Loop
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology
from sojourn.topology.traffic import rates

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

FILE = Path(__file__).resolve().parents[2] / "examples" / "nested.yaml"
NESTED = read_topology(FILE)
WAITING, DRAIN_S, BEHIND_S, LASTS_S = 1000, 10.0, 5.0, 60.0


class Producing:
    """Writes *per_s* records with a clock that is behind, until it is left."""

    def __init__(self, servers, topic, per_s):
        self._producer = Producer({**Cluster(servers).for_clients, "linger.ms": 5})
        self._topic, self._per_s, self._ended = topic, per_s, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def write(self, number):
        at_ms = round(1000 * (time.time() - BEHIND_S))
        self._producer.produce(
            self._topic, json.dumps({"seed": number}).encode(), timestamp=at_ms
        )
        self._producer.poll(0)

    def __enter__(self):
        for number in range(WAITING):
            self.write(number)
        assert self._producer.flush(30) == 0
        return self

    def start(self):
        self._thread.start()

    def __exit__(self, *_raised):
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self._producer.flush(30)

    def _run(self):
        number = WAITING
        while not self._ended.wait(1 / self._per_s):
            self.write(number)
            number += 1


def works_off():
    """Return the processors that work off what waits in the time that is given."""
    entering = {"enter": NESTED.arrivals_per_s + WAITING / DRAIN_S}
    return sum(
        floor(per_s * NESTED.operator[name].service_s) + 1
        for name, per_s in rates(entering, NESTED.gains).items()
    )


@pytest.fixture(scope="module")
def episodes(broker, servers, tmp_path_factory):
    """Return the turns of a loop that starts with records waiting."""
    app = load(str(FILE))
    topic = app.topic(next(iter(app.sources)))
    policy = Drs(
        goal=Goal(target=Target("p95", 2.0)), caution=Caution(t_ra_s=10.0), drain_s=DRAIN_S
    )
    broker.create_topics({topic: 1})
    settings = SparkSettings(servers=servers, state=tmp_path_factory.mktemp("state"))
    with (
        Producing(servers, topic, NESTED.arrivals_per_s) as producing,
        SparkEngine(app, str(FILE), settings) as engine,
    ):
        engine.start(NESTED, Plan.here(dict.fromkeys(NESTED.operator, 1)))
        producing.start()
        return list(Loop(engine, NESTED, policy, every_s=2.0).run(LASTS_S))


def test_no_more_is_asked_for_than_works_off_what_waits(episodes):
    asked = max(e.decision.after.processors for e in episodes)
    assert asked <= 1.5 * works_off()
    assert any(e.decision.kind == "up" for e in episodes)


def test_clocks_that_are_behind_are_noticed_and_made_up_for(episodes):
    usable = [e.observation for e in episodes if e.observation.usable]
    assert any("about 5 s behind" in note for o in usable[-5:] for note in o.notes)
    late = [o.percentile_s(0.5) for o in usable[-5:] if o.completions.number]
    assert late
    assert min(late) < BEHIND_S / 2

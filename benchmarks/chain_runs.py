"""Runs of chains of operators without work on one broker, ours and that of a peer."""

import json
import time
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, TopicPartition

import peers_app
from cpu_shares import cpu_s
from quix_chain import QuixChain, await_members, linger_for
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.load.offered_load import Load, Source
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn_trial.cases.sink import Sink
from sojourn_trial.kills.driven import Driver
from spark_throughput import filled

OURS, PEER = "sojourn", "quix"
MOST = 0.98
PATIENCE_S = 900.0
# The load is started before the time that is measured, and ends after it.
MARGIN_S = 3.0
# Of the warm-up, what may be at another rate: in the rest, what has piled up is worked off.
WARM = 0.7
# Batches take a little longer than asked: so much time has the end of one in it.
BATCHES = 1.2
# Kafka's times are whole milliseconds, cut off.
CUT_OFF_S = 0.0005


class Numbers(Sink):
    """Reads the numbers of records, and when each came."""

    def _keep(self, message):
        if self._is_new(message):
            seed = json.loads(message.value())["seed"]
            self.arrived.append((seed, time.time()))
            self._roots.add(seed)


@dataclass(frozen=True, kw_only=True)
class Steady:
    """A chain at a constant rate: latencies, silences, and CPU per record.

    At *per_s* it was sent records, at *came_per_s* they came to the sink.
    """

    name: str
    operators: int
    per_s: float
    came_per_s: float
    sent: int
    lost: int
    twice: int
    cpu_ms: float
    silences_ms: list
    waits_s: list = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Drained:
    """A chain that works off what waits: records per second at the sink."""

    name: str
    records: int
    per_s: float
    most_per_s: float


class Bench:
    """Runs chains on one broker, each with topics of its own.

    *asked* are the options of the benchmark; the peer is run by *python*.
    """

    def __init__(self, asked, servers, folder, python):
        self._asked, self._servers, self._folder = asked, servers, folder
        self._python, self._number = python, 0

    def steady(self, name, operators, per_s):
        """Return what is measured of a chain at *per_s*."""
        chain, source, sink = self._chain(name, operators, per_s)
        lasts_s = self._asked.warm_up + self._asked.lasts + MARGIN_S
        warm_per_s, warm_s = self._asked.warm_per_s or per_s, WARM * self._asked.warm_up
        points = [(0.0, warm_per_s), (warm_s, warm_per_s), (warm_s, per_s), (lasts_s, per_s)]
        load = Load(
            servers=self._servers,
            sources=(Source(topic=source, points=points, gaps="constant"),),
            lasts_s=lasts_s,
        )
        with closing(self._sink(sink)) as numbers, chain, LoadProcess(load) as sending:
            time.sleep(self._asked.warm_up)
            began_s, before_s = time.time(), cpu_s(chain.family())
            time.sleep(self._asked.lasts)
            ended_s, after_s = time.time(), cpu_s(chain.family())
            sent = sending.wait().sent[source]
            numbers.await_roots(sent)
        births = self._births(source)
        first = {}
        for seed, at_s in numbers.arrived:
            first.setdefault(seed, at_s)
        reads = [at_s for _, at_s in numbers.arrived if began_s <= at_s < ended_s]
        if len(reads) < 2:
            problem = f"{name}: {len(reads)} records came in {self._asked.lasts:g} s"
            raise SystemExit(f"{problem}; give it more time with --warm-up and --lasts")
        return Steady(
            name=name,
            operators=operators,
            per_s=per_s,
            came_per_s=len(reads) / (ended_s - began_s),
            sent=sent,
            lost=sent - len(first),
            twice=len(numbers.arrived) - len(first),
            cpu_ms=1e3 * (after_s - before_s) / len(reads),
            silences_ms=silences_ms(reads, BATCHES * self._asked.batch),
            waits_s=[
                at_s - births[seed]
                for seed, at_s in first.items()
                if began_s <= births[seed] < ended_s
            ],
        )

    def drained(self, name, operators, per_s):
        """Return how fast a chain works off what waits; it is set up for *per_s*."""
        chain, source, sink = self._chain(name, operators, per_s)
        number = self._asked.records
        filled(self._servers, source, number)
        with closing(self._sink(sink)) as numbers, chain:
            if not numbers.await_roots(number, patience_s=PATIENCE_S):
                came = len(numbers.roots())
                raise SystemExit(f"{name}: {came} of {number} came in {PATIENCE_S:g} s")
        times_s = [at_s for _, at_s in numbers.arrived]
        most = round(MOST * len(times_s)) - 1
        return Drained(
            name=name,
            records=number,
            per_s=(len(times_s) - 1) / (times_s[-1] - times_s[0]),
            most_per_s=most / (times_s[most] - times_s[0]),
        )

    def _chain(self, name, operators, per_s):
        """Return a chain that is not started, and the topics at its ends."""
        self._number += 1
        folder = self._folder / str(self._number)
        if name == PEER:
            asked_ms = self._asked.linger_ms
            topics = [f"{PEER}-{self._number}-{place}" for place in range(operators + 1)]
            chain = QuixChain(
                self._python,
                folder,
                self._servers,
                topics,
                commit_s=self._asked.batch,
                linger_ms=linger_for(per_s) if asked_ms is None else asked_ms,
            )
        else:
            address = f"chain_{operators}_{self._number}"
            app = peers_app.chain(address)
            topics = [app.topic("source"), *map(app.topic, app.operators)]
            chain = Driver(
                folder,
                f"peers_app:{address}",
                self._servers,
                batch_s=self._asked.batch,
                allocation=dict.fromkeys(app.operators, 1),
                per_s=per_s,
            )
        Cluster(self._servers).ensure([topics[0], topics[-1]], 1)
        return chain, topics[0], topics[-1]

    def _sink(self, topic):
        numbers = Numbers(self._servers, [topic])
        await_members(self._servers, "sink")
        return numbers

    def _births(self, topic):
        """Return when each record was given to the source."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "births"})
        place = TopicPartition(topic, 0, 0)
        consumer.assign([place])
        _, end = consumer.get_watermark_offsets(place)
        births, read = {}, 0
        while read < end:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                _, at_ms = message.timestamp()
                births[json.loads(message.value())["seed"]] = 1e-3 * at_ms + CUT_OFF_S
                read = message.offset() + 1
        consumer.close()
        return births


def silences_ms(reads_s, every_s):
    """Return the longest time without a record in every *every_s*, but for a rest."""
    reads = np.sort(reads_s)
    gaps, windows = np.diff(reads), np.floor((reads[:-1] - reads[0]) / every_s).astype(int)
    whole = max(1, int((reads[-1] - reads[0]) / every_s))
    return [
        1e3 * float(gaps[windows == place].max())
        for place in range(whole)
        if (windows == place).any()
    ]

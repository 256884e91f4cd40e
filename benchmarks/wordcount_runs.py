"""Runs of word counts on one broker: ours with a state and without, a peer's, and Spark's."""

import json
import multiprocessing
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from math import nan
from pathlib import Path

import psutil
from confluent_kafka import Producer

import wordcount_app
from chain_runs import CUT_OFF_S
from cpu_shares import cpu_by_kind, cpu_s
from quix_chain import QuixChain, await_members, linger_for
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn_trial.cases.sink import Sink, percentiles_ms
from sojourn_trial.kills.driven import Driver
from sojourn_trial.kills.ledger import written_at

NAMES = ("stateless", "state", "quix", "spark")
WORDS, FROM, UNTIL, PATIENCE_S, LOOK_S = 1000, 0.1, 0.98, 240.0, 0.05
# What those are set up for that work off what waits.
DRAINED_PER_S = 5000.0


def words(number, seed=1):
    """Return words, some of them far more often than others."""
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    return random.Random(seed).choices([f"w{n}" for n in range(WORDS)], weights, k=number)


def send(servers, topic, number, per_s=None):
    """Send words to a topic, all at once or at a constant rate."""
    linger_ms = 50 if per_s is None else 0
    room = {"queue.buffering.max.messages": max(100_000, number)}
    producer = Producer({"bootstrap.servers": servers, "linger.ms": linger_ms, **room})
    began_s = time.monotonic()
    for seed, word in enumerate(words(number)):
        if per_s is not None:
            time.sleep(max(0.0, began_s + seed / per_s - time.monotonic()))
        # the peer has a state for each key of a message
        producer.produce(topic, json.dumps({"seed": seed, "word": word}), key=word)
        producer.poll(0)
    producer.flush()


class Counts(Sink):
    """Reads counts: which word, of which record, how many, and when it came."""

    def __init__(self, servers, topic):
        self.highest = Counter()
        super().__init__(servers, [topic])

    def _keep(self, message):
        if self._is_new(message):
            told = json.loads(message.value())
            self.arrived.append((told["seed"], told["word"], time.time()))
            self.highest[told["word"]] = max(self.highest[told["word"]], told["n"])

    def done(self, name):
        """Return how many records the counts are of."""
        return len(self.arrived) if name == "stateless" else self.highest.total()

    def await_done(self, name, number):
        """Return when so many records are counted."""
        until_s = time.monotonic() + PATIENCE_S
        while self.done(name) < number:
            if time.monotonic() > until_s:
                raise SystemExit(f"{name}: {self.done(name)} of {number} in {PATIENCE_S:g} s")
            time.sleep(LOOK_S)


class SparkAggregation:
    """Spark's own aggregation in a process; leaving it ends it."""

    def __init__(self, folder, asked):
        self._asked, self._log = asked, folder / "aggregation.log"
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        script = Path(__file__).with_name("spark_aggregation.py")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, script, json.dumps(self._asked)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        if not self._process.stdout.readline():
            raise SystemExit(f"Spark's aggregation ended:\n{self._log.read_text()[-2000:]}")
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    def family(self):
        """Return all its processes."""
        whole = psutil.Process(self._process.pid)
        return [whole, *whole.children(recursive=True)]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was measured of one: records per second, per core, CPU and latency.

    *parts_us* is the CPU time of a record in each kind of process; of ours only.
    """

    name: str
    per_s: float
    per_s_per_core: float
    cpu_us: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    parts_us: dict


class Bench:
    """Runs word counts on one broker, each with topics of its own."""

    def __init__(self, asked, servers, folder, python):
        self._asked, self._servers, self._folder = asked, servers, folder
        self._python, self._number = python, 0

    def run(self, name):
        """Return what is measured of one."""
        per_s, cpu, parts = self.drained(name)
        waits_s = [nan] if self._asked.no_latency else self.waits_s(name)
        p50_ms, p95_ms, p99_ms = percentiles_ms(waits_s)
        measured = Run(
            name=name,
            per_s=per_s,
            per_s_per_core=1 / cpu,
            cpu_us=1e6 * cpu,
            p50_ms=p50_ms,
            p95_ms=p95_ms,
            p99_ms=p99_ms,
            parts_us={kind: round(1e6 * used_s) for kind, used_s in parts.items()},
        )
        print(measured, file=sys.stderr, flush=True)
        return measured

    def drained(self, name):
        """Return records per second and CPU seconds per record, also by kind of process."""
        number = self._asked.records
        counting, source, sink = self._counting(name, DRAINED_PER_S)
        send(self._servers, source, number)
        with closing(self._sink(sink)) as counts, counting:
            counts.await_done(name, FROM * number)
            first, began_s, before_s = self._now(counts, name, counting)
            earlier = self._by_kind(counting)
            counts.await_done(name, UNTIL * number)
            last, ended_s, after_s = self._now(counts, name, counting)
            later = self._by_kind(counting)
            counts.await_done(name, number)
        self._check(name, counts, number)
        number = last - first
        parts = {kind: (later[kind] - used_s) / number for kind, used_s in earlier.items()}
        return number / (ended_s - began_s), (after_s - before_s) / number, parts

    def _by_kind(self, counting):
        """Return the CPU seconds of one of ours so far, by kind of process."""
        return cpu_by_kind(counting.family()) if isinstance(counting, Driver) else {}

    def waits_s(self, name):
        """Return how long each word took at a constant rate, once that is steady."""
        asked = self._asked
        counting, source, sink = self._counting(name, asked.per_s)
        number = round(asked.per_s * (asked.warm_up + asked.lasts))
        loading = multiprocessing.get_context("spawn").Process(
            target=send, args=(self._servers, source, number, asked.per_s)
        )
        with closing(self._sink(sink)) as counts, counting:
            loading.start()
            loading.join()
            counts.await_done(name, number)
        self._check(name, counts, number)
        came = {}  # the last record of a word that has come, and when
        for seed, word, at_s in counts.arrived:
            came.setdefault(word, []).append((seed, at_s))
        waits = []
        for at_s, payload in written_at(self._servers, source):
            record = json.loads(payload)
            if record["seed"] >= asked.per_s * asked.warm_up:
                told_s = next(s for n, s in came[record["word"]] if n >= record["seed"])
                waits.append(told_s - at_s - CUT_OFF_S)
        return waits

    def _now(self, counts, name, counting):
        return counts.done(name), time.monotonic(), cpu_s(counting.family())

    def _check(self, name, counts, number):
        due = Counter(words(number))
        if name != "stateless" and counts.highest != due:
            raise SystemExit(f"{name}: counts are wrong: {counts.highest - due} too many")

    def _sink(self, topic):
        counts = Counts(self._servers, topic)
        await_members(self._servers, "sink")
        return counts

    def _counting(self, name, per_s):
        """Return one that is not started, and the topics that it reads and writes."""
        self._number += 1
        folder, batch_s = self._folder / str(self._number), self._asked.batch
        if name in ("state", "stateless"):
            address = f"{name}_{self._number}"
            app = wordcount_app.word_count(address)
            source, sink = app.topic("words"), app.topic("count")
            counting = Driver(
                folder,
                f"wordcount_app:{address}",
                self._servers,
                batch_s=batch_s,
                allocation={"count": 1},
                per_s=per_s,
            )
        else:
            source, sink = (f"{name}-{self._number}-{end}" for end in ("words", "count"))
            if name == "quix":
                counting = QuixChain(
                    self._python,
                    folder,
                    self._servers,
                    [source, sink],
                    commit_s=batch_s,
                    linger_ms=linger_for(per_s),
                    script="quix_count.py",
                )
            else:
                asked = {"servers": self._servers, "reads": source, "writes": sink}
                told = {**asked, "state": str(folder), "commit_s": batch_s}
                counting = SparkAggregation(folder, told)
        Cluster(self._servers).ensure([source, sink], 1)
        return counting, source, sink

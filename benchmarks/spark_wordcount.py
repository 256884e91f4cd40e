"""Words that are counted by key: what a state costs, beside a peer and Spark's own aggregation.

    python benchmarks/spark_wordcount.py [--rounds 1] [--only NAME…] [--no-latency]
                                         [--json FILE] [--quick]

Four that read the same words from one topic and write a count for each to another:

- stateless: a function of ours that reads by key and keeps nothing
- state: the same, with a state for each word
- quix: Quix Streams, with states in RocksDB and a changelog topic, at least once
- spark: `groupBy("word").count()` of Spark in real-time mode, with states in RocksDB

In turn each works off words that wait (--records), for records per second and CPU time per
record; then words come at a constant rate (--per-s), for latency: from the time of a record in
the source until a count that it is in is read at the sink. Spark's own tells only the last of
several counts of a word. All commit every --batch seconds. CPU is that of all processes, the
driver included, without broker and load. From 10 to 98 % of the records are measured, so that
what starts is not. In the end counts are compared with those of the input.
"""

import argparse
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from math import nan
from pathlib import Path
from statistics import median

import psutil
from confluent_kafka import Producer

import wordcount_app
from chain_runs import CUT_OFF_S, cpu_s
from driven import Driver
from ledger import written_at
from on_spark import Sink, percentiles_ms
from quix_chain import QuixChain, await_members, environment, linger_for
from sojourn.spark.kafka.broker import Broker
from sojourn.spark.kafka.cluster import Cluster

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
    """What was measured of one: records per second, per core, CPU and latency."""

    name: str
    per_s: float
    per_s_per_core: float
    cpu_us: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class Bench:
    """Runs word counts on one broker, each with topics of its own."""

    def __init__(self, asked, servers, folder, python):
        self._asked, self._servers, self._folder = asked, servers, folder
        self._python, self._number = python, 0

    def run(self, name):
        """Return what is measured of one."""
        per_s, cpu = self.drained(name)
        waits_s = [nan] if self._asked.no_latency else self.waits_s(name)
        p50_ms, p95_ms, p99_ms = percentiles_ms(waits_s)
        found = Run(
            name=name,
            per_s=per_s,
            per_s_per_core=1 / cpu,
            cpu_us=1e6 * cpu,
            p50_ms=p50_ms,
            p95_ms=p95_ms,
            p99_ms=p99_ms,
        )
        print(found, file=sys.stderr, flush=True)
        return found

    def drained(self, name):
        """Return the records per second, and CPU seconds per record, while words wait."""
        number = self._asked.records
        counting, source, sink = self._counting(name, DRAINED_PER_S)
        send(self._servers, source, number)
        with closing(self._sink(sink)) as counts, counting:
            counts.await_done(name, FROM * number)
            first, began_s, before_s = self._now(counts, name, counting)
            counts.await_done(name, UNTIL * number)
            last, ended_s, after_s = self._now(counts, name, counting)
            counts.await_done(name, number)
        self._check(name, counts, number)
        return (last - first) / (ended_s - began_s), (after_s - before_s) / (last - first)

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


def show(runs):
    """Print the medians of all rounds, and how one compares with another."""
    fields = [name for name in asdict(next(iter(runs.values()))[0]) if name != "name"]
    medians = {
        name: {field: median(getattr(run, field) for run in some) for field in fields}
        for name, some in runs.items()
    }
    print(f"{'':28}" + "".join(f"{field:>15}" for field in fields))
    for name, values in medians.items():
        print(f"{name:28}" + "".join(f"{value:15.1f}" for value in values.values()))
    for one, other in (("state", "stateless"), ("state", "quix"), ("state", "spark")):
        if {one, other} <= medians.keys():
            ratios = [
                median(
                    getattr(a, field) / getattr(b, field)
                    for a, b in zip(runs[one], runs[other], strict=True)
                )
                for field in fields
            ]
            print(f"{f'{one} / {other}':28}" + "".join(f"{ratio:15.2f}" for ratio in ratios))


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--records", type=int, default=100_000, help="that wait at the start")
    parser.add_argument("--per-s", type=float, default=200.0, help="for latency")
    parser.add_argument("--lasts", type=float, default=30.0, help="seconds measured of these")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds before these")
    parser.add_argument("--batch", type=float, default=15.0, help="seconds between commits")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=[*NAMES], metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--no-latency", action="store_true", help="only what waits")
    parser.add_argument("--quick", action="store_true", help="few words: does it work?")
    asked = parser.parse_args()
    if asked.quick:
        asked.records, asked.lasts, asked.warm_up, asked.batch = 5000, 5.0, 5.0, 5.0
    runs = {name: [] for name in NAMES if name in asked.only}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = environment(folder / "peer") if "quix" in runs else None
        with Broker(secured=False) as broker:
            bench = Bench(asked, broker.bootstrap_servers, folder, python)
            for _ in range(asked.rounds):
                for name, some in runs.items():
                    some.append(bench.run(name))
    show(runs)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(r) for s in runs.values() for r in s]) + "\n")


if __name__ == "__main__":
    main()

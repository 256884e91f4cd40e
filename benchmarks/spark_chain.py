"""Latency without work on Spark: three Python operators, in one part.

    python benchmarks/spark_chain.py [--per-s 20] [--lasts 60] [--warm-up 30] [--short]

Prints percentiles from the birth of a root until its record is read at the sink, where the
time goes, and the same for a chain of `repartition(1)` queries, one after the other.
"""

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

import chain
import repartition
from sojourn.decide.plan import Plan
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.cases.sink import Sink, load_of, percentiles_ms, sink_of, watched

HINTS = dict.fromkeys(chain.app.operators, 1e-3)


def topology_of(per_s):
    """Return the chain as planner and engine see it."""
    from sojourn.app.operator import Hints  # noqa: PLC0415

    measured = {name: Hints(service_s=service_s) for name, service_s in HINTS.items()}
    return chain.app.topology({"source": per_s}, measured=measured)


def ours(servers, asked):
    """Return the latencies of our chain, and what was measured while it ran."""
    topology = topology_of(asked.per_s)
    settings = SparkSettings(servers=servers, starting="latest")
    with SparkEngine(chain.app, "chain:app", settings) as engine:
        engine.start(topology, Plan.here(dict.fromkeys(chain.app.operators, 2)))
        lasts_s = asked.warm_up + asked.lasts
        with (
            sink_of(chain.app, servers) as sink,
            load_of(topology, chain.app, servers, lasts_s=lasts_s) as load,
        ):
            began_s = time.time()
            looks = list(watched(engine, lasts_s))
            sent = load.wait().sent["chain.source"]
            complete = sink.await_roots(sent)
        warm = [a for a in sink.arrived if a.birth_s > began_s + asked.warm_up]
        waits = [a.took_s for a in warm]
    print(
        f"a part: {sent} records sent, {len(sink.roots())} different at the sink, "
        f"{len(sink.arrived)} in all{'' if complete else ' (INCOMPLETE)'}"
    )
    return waits, looks[int(asked.warm_up) :]


def theirs(servers, asked, folder):
    """Return the latencies of three `repartition(1)` queries in a row."""
    topics = ["plain-0", "plain-1", "plain-2", "plain-3"]
    Cluster(servers).ensure(topics, 1)
    session = new_session(
        "repartition", jars=resolve_jars(), slots=8, log=folder / "repartition.log"
    )
    waits, rng = {}, np.random.default_rng(1)
    queries = [
        repartition.start(
            session,
            repartition.Repartitioned(servers, reads, writes, folder / writes),
            repartition.passing(),
        )
        for reads, writes in pairwise(topics)
    ]
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    reader = Plain(servers, topics[-1])
    births = []
    began_s = next_s = time.time()
    while next_s < began_s + asked.warm_up + asked.lasts:
        next_s += rng.exponential(1 / asked.per_s)
        time.sleep(max(0.0, next_s - time.time()))
        births.append(time.time())
        producer.produce(topics[0], str(len(births) - 1).encode())
        producer.poll(0)
    producer.flush()
    time.sleep(5)
    reader.close()
    for query in queries:
        query.stop()
    end_session(session)
    for number, at_s in reader.arrived:
        if births[number] > began_s + asked.warm_up:
            waits.setdefault(number, at_s - births[number])
    print(
        f"repartition(1): {len(births)} sent, {len({n for n, _ in reader.arrived})} "
        f"different at the sink"
    )
    return list(waits.values())


class Plain(Sink):
    """Reads numbers without headers."""

    def _keep(self, message):
        self.arrived.append((int(message.value().split()[0]), time.time()))

    def __init__(self, servers, topic):
        super().__init__(servers, [topic])


def shares(looks):
    """Print where the time of a record goes."""
    for name in chain.app.operators:
        counts = [
            p for look in looks for o in look.operators if o.name == name for p in o.processors
        ]
        served = sum(p.served for p in counts)
        if served:
            wait_ms = 1e3 * sum(p.wait_s for p in counts) / served
            service_ms = 1e3 * sum(p.service_s for p in counts) / served
            print(
                f"  {name}: {wait_ms:.1f} ms from the stream to a processor, "
                f"{service_ms:.2f} ms in it"
            )


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--per-s", type=float, default=20.0)
    parser.add_argument("--lasts", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=30.0)
    parser.add_argument("--short", action="store_true", help="10 s each: does it work?")
    parser.add_argument("--alone", action="store_true", help="without repartition()")
    asked = parser.parse_args()
    if asked.short:
        asked.lasts = asked.warm_up = 5.0
    with tempfile.TemporaryDirectory() as temporary, Broker(secured=False) as broker:
        waits, looks = ours(broker.bootstrap_servers, asked)
        p50, p95, p99 = percentiles_ms(waits)
        print(
            f"  p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms at {asked.per_s:g} per s"
        )
        shares(looks)
        if not asked.alone:
            waits = theirs(broker.bootstrap_servers, asked, Path(temporary))
            p50, p95, p99 = percentiles_ms(waits)
            print(f"  p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms")


if __name__ == "__main__":
    main()

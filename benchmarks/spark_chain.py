"""Latency without work on Spark: three Python operators, four Kafka hops.

    python benchmarks/spark_chain.py [--per-s 20] [--lasts 60] [--warm-up 20]

Prints percentiles from the birth of a root until its record is read at the sink, and how
long a host takes from the message until it has more, and fewer, processors.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer

from sojourn.host.controller import Controller
from sojourn.host.server import Settings
from sojourn.spark.broker import Broker
from sojourn.spark.feed import Feed, start_feed
from sojourn.spark.jvm import resolve_jars
from sojourn.spark.relay import Route
from sojourn.spark.session import new_session

CHAIN = {"first": "source", "second": "first", "third": "second"}
TOPICS = dict.fromkeys(["source", "first", "second", "third", "dead"], 1)


def started(spark, broker, controller, folder):
    """Return the running queries of the chain."""
    queries = []
    for name, reads in CHAIN.items():
        host = controller.start(
            Settings(
                name=name,
                job="sojourn.host.operator_job:of_application",
                argument=f"chain:app {name}",
                folder=folder / name,
                processors=2,
                report_every_s=0.05,
            )
        )
        route = Route(operator=name, writes={name: name}, dead_letters="dead")
        queries.append(
            start_feed(
                spark,
                Feed(
                    route=route,
                    servers=broker.bootstrap_servers,
                    reads=[reads],
                    host=host,
                    checkpoint=folder / f"{name}-checkpoint",
                ),
            )
        )
    return queries


def read_sink(servers, found, ended):
    """Note when each record reaches the sink."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "sink",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 5,
        }
    )
    consumer.subscribe(["third"])
    while not ended.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((json.loads(message.value())["number"], time.time()))
    consumer.close()


def rescaled(controller, name):
    """Return the seconds from the message until 8 more processors, and 8 fewer, are there."""
    took = []
    for wanted in (10, 2):
        began_s = time.perf_counter()
        controller.scale(name, wanted)
        while not any(t.running == wanted for t in controller.tallies().get(name, [])):
            time.sleep(0.002)
        took.append(time.perf_counter() - began_s)
    return took


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--per-s", type=float, default=20.0)
    parser.add_argument("--lasts", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=20.0)
    asked = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    jars, rng = resolve_jars(), np.random.default_rng(1)
    with (
        tempfile.TemporaryDirectory() as temporary,
        Broker(jars=jars) as broker,
        Controller(Path(temporary) / "hosts") as controller,
    ):
        broker.create_topics(TOPICS)
        spark = new_session("chain", jars=jars, slots=4)
        queries = started(spark, broker, controller, Path(temporary))
        found, ended, births = [], threading.Event(), []
        reading = threading.Thread(
            target=read_sink, args=(broker.bootstrap_servers, found, ended)
        )
        reading.start()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
        began_s = next_s = time.time()
        while next_s < began_s + asked.warm_up + asked.lasts:
            next_s += rng.exponential(1 / asked.per_s)
            time.sleep(max(0.0, next_s - time.time()))
            births.append(time.time())
            producer.produce("source", json.dumps({"number": len(births) - 1}))
            producer.poll(0)
        producer.flush()
        scaling = [rescaled(controller, "second") for _ in range(5)]
        until_s = time.time() + 30
        while len(found) < len(births) and time.time() < until_s:
            time.sleep(0.1)
        ended.set()
        reading.join()
        for query in queries:
            query.stop()
        spark.stop()
    warm = began_s + asked.warm_up
    waits_ms = [1e3 * (at_s - births[n]) for n, at_s in found if births[n] > warm]
    p50, p95, p99 = np.percentile(waits_ms, [50, 95, 99])
    print(
        f"{len(births)} records sent, {len(found)} read, {len({n for n, _ in found})} different"
    )
    print(f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms at {asked.per_s:g} per s")
    more, fewer = np.median(np.array(scaling), axis=0)
    print(f"2 -> 10 processors {1e3 * more:.0f} ms, 10 -> 2 {1e3 * fewer:.0f} ms, as reported")


if __name__ == "__main__":
    main()

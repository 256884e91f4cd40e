"""Records per second of light operators on Spark, beside what there is without us.

    python benchmarks/spark_throughput.py [--records 100000] [--only NAME …] [--nodes 2]

One operator and three in a row pass records on and do nothing else, with one record in each
transfer from Spark to Python and with as many as are waiting (auto); one of them also beside
an operator that reads the same records and takes a second for each. Compared with plain
`mapInArrow` in micro-batches and a plain loop over a Kafka consumer in Python, which promise
nothing about latency and failures. All work off the same records, waiting in a topic. Of ours
it prints the CPU time of a record, too, by kind of process. With `--nodes` ours are on a trial
cluster of so many.
"""

import argparse
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer

import repartition
from cpu_shares import cpu_by_kind
from sojourn.app.operator import Hints
from sojourn.decide.plan import Plan
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.master import LOCAL
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.kills.trial import spark_on
from throughput_app import APPS

PATIENCE_S, MOST = 900.0, 0.98


def filled(servers, topic, number):
    """Let *number* records wait in *topic*."""
    Cluster(servers).ensure([topic], 1)
    room = {"queue.buffering.max.messages": max(100_000, number)}
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, **room})
    for seed in range(number):
        producer.produce(topic, b'{"seed":%d}' % seed)
        if seed % 1000 == 0:
            producer.poll(0)
    producer.flush()


def drained_per_s(servers, topic, number, cpu=dict):
    """Return the records per second that come to *topic*, until nearly all are there.

    And by how much what *cpu* returns, seconds by kind, grew for each of them.
    """
    offsets = Offsets(Cluster(servers).client(), {topic: 1})
    first_s, until_s = None, time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        (seen,) = offsets.partitions()[topic].values()
        now_s = time.monotonic()
        # the first tenth is for everything to get warm
        if first_s is None and seen >= number / 10:
            first_s, first, before = now_s, seen, cpu()
        if seen >= MOST * number:
            done, after = seen - first, cpu()
            used_s = {
                kind: (after[kind] - before_s) / done for kind, before_s in before.items()
            }
            return done / (now_s - first_s), used_s
        time.sleep(0.05)
    raise TimeoutError(f"{seen} of {number} after {PATIENCE_S} s")


def ours(servers, name, number, per_s, spark=None):
    """Return what an application of ours carries, with these settings of *spark*, and CPU."""
    others = _children()  # the broker
    app = APPS[name]
    filled(servers, app.topic("source"), number)
    measured = {name: Hints(service_s=2e-5) for name in app.operators}
    topology = app.topology({"source": per_s}, measured=measured)
    spark = dict(spark or {})
    master = spark.pop("spark.master", LOCAL)
    settings = SparkSettings(servers=servers, starting="earliest", master=master, spark=spark)
    with SparkEngine(app, f"throughput_app:{name}", settings) as engine:
        engine.start(topology, Plan.here(dict.fromkeys(app.operators, 1)))
        (sink,) = app.sinks.values()
        return drained_per_s(
            servers,
            app.topic(sink.stream.name),
            number,
            cpu=lambda: cpu_by_kind([psutil.Process(), *(_children() - others)]),
        )


def _children():
    return set(psutil.Process().children(recursive=True))


def micro_batches(servers, folder, number):
    """Return what Spark carries in micro-batches."""
    filled(servers, "micro-in", number)
    Cluster(servers).ensure(["micro-out"], 1)
    options = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.buffer.size": "65536",
        "spark.sql.execution.pandas.udf.buffer.size": "65536",
    }
    session = new_session(
        "micro", jars=resolve_jars(), slots=2, options=options, log=folder / "micro.log"
    )
    query = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "micro-in")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", max(1, number // 20))
        .load()
        .select("value")
        .mapInArrow(repartition.passing(), "value binary")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "micro-out")
        .option("checkpointLocation", str(folder / "micro"))
        .start()
    )
    try:
        return drained_per_s(servers, "micro-out", number)[0]
    finally:
        query.stop()
        end_session(session)


def consumer_loop(servers, number):
    """Return what a loop over a consumer carries."""
    filled(servers, "loop-in", number)
    Cluster(servers).ensure(["loop-out"], 1)
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "loop", "auto.offset.reset": "earliest"}
    )
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    consumer.subscribe(["loop-in"])
    done, began_s = 0, None
    while done < number:
        message = consumer.poll(1.0)
        if message is None or message.error() is not None:
            continue
        began_s = began_s or time.monotonic()
        producer.produce("loop-out", message.value())
        producer.poll(0)
        done += 1
    producer.flush()
    consumer.close()
    return number / (time.monotonic() - began_s)


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=APPS, help="of ours only these")
    parser.add_argument("--nodes", type=int, help="of a trial cluster for ours")
    parser.add_argument("--short", action="store_true", help="2,000 records: does it work?")
    asked = parser.parse_args()
    number = 2000 if asked.short else asked.records
    with (
        tempfile.TemporaryDirectory() as temporary,
        Broker(secured=False) as broker,
        TrialCluster(asked.nodes, cores=6, folder=Path(temporary) / "cluster", plain=True)
        if asked.nodes
        else nullcontext() as cluster,
    ):
        spark = spark_on(cluster) if cluster else None
        servers = broker.bootstrap_servers
        plain = consumer_loop(servers, number)
        print(f"{'a consumer loop in Python':40} {plain:8.0f} per s")
        micro = micro_batches(servers, Path(temporary), number)
        print(f"{'micro-batches, mapInArrow':40} {micro:8.0f} per s")
        for name, said, per_s in (
            ("one", "one operator, one record a transfer", 100.0),
            ("one_auto", "one operator, auto", 5000.0),
            ("beside", "one operator, auto, beside a slow one", 5000.0),
            ("three", "three operators, one record a transfer", 100.0),
            ("three_auto", "three operators, auto", 1500.0),
        ):
            if name not in (asked.only or APPS):
                continue
            carried, used_s = ours(servers, name, number, per_s, spark)
            print(f"{said:40} {carried:8.0f} per s", flush=True)
            shares = ", ".join(f"{kind} {1e6 * each_s:.0f}" for kind, each_s in used_s.items())
            print(f"    µs of CPU for each: {shares}", flush=True)


if __name__ == "__main__":
    main()

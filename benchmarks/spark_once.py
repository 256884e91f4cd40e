"""What a deduplicating sink spends at the begin and at the end of a batch.

    python benchmarks/spark_once.py [--records 100000] [--bytes 200]

A broker of its own and a topic with so many records, each with as many bytes and an id. The
first batch of all reads the last 100,000 of them, one that is repeated what was written since
it began, any other the end of the topic. At its end a batch saves the ids that it knows. Prints
the median and the worst time of each, and what the ids take in memory and on disk.
"""

import argparse
import tempfile
import tracemalloc
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from confluent_kafka import Producer

from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.task.sink_memory import SavedMemory, SinkMemory
from sojourn.spark.task.sink_topic import SinkTopic
from sojourn.spark.wire.repetitions import Input, Memory, Provenance, Repetitions

TOPIC, WINDOW, ORDERS = "once", 100_000, "shop.orders@Xk3f9a2B-5f0c9e1a"


def result(offset):
    """Return a record as it comes out of a chain of three operators."""
    entered = Input(writer="price", topic=ORDERS, partition=0, offset=offset, floor=0)
    identity = f"{entered.position}.price.0.taxed.0.checked.0"
    return Provenance(identity=identity, inputs=(entered,))


def write(clients, number, size):
    """Write so many results."""
    producer = Producer({**clients, "linger.ms": 20})
    for place in range(number):
        identity = result(place).identity
        headers = [("sojourn-id", identity.encode()), ("sojourn-birth", b"1767225600.123456")]
        producer.produce(TOPIC, bytes(size), headers=headers)
        producer.poll(0)
        if place % 10_000 == 0:
            producer.flush()
    producer.flush()


def show(what, rounds, step):
    """Print what a step takes, and return what it gives."""
    times_ms = []
    for _ in range(rounds):
        began_s = perf_counter()
        given = step()
        times_ms.append(1e3 * (perf_counter() - began_s))
    print(f"{what}: {median(times_ms):.0f} ms, at worst {max(times_ms):.0f} ms")
    return given


def remember(number, rounds):
    """Print what it takes to know, to save and to load so many ids."""
    tracemalloc.start()
    repetitions = Repetitions(WINDOW, Memory())
    for place in range(number):
        repetitions.is_new(result(place))
    print(f"{number} ids take {tracemalloc.get_traced_memory()[0] / 1e6:.0f} MB in memory")
    tracemalloc.stop()
    saved = SavedMemory(repetitions.memory)
    with tempfile.TemporaryDirectory() as folder:
        files, offsets = SinkMemory(Path(folder)), count(number)
        show("saving them", rounds, lambda: files.save(0, next(offsets), saved))
        show("loading them", rounds, lambda: files.load(0, number))
        size = (Path(folder) / f"0-{number}").stat().st_size
        print(f"they take {size / 1e6:.1f} MB on disk")


def main():
    """Write, read and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=WINDOW)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with Broker(secured=False) as broker:
        broker.create_topics({TOPIC: 1})
        clients = Cluster(broker.bootstrap_servers).for_clients
        write(clients, asked.records, asked.bytes)
        topic, begin = SinkTopic(TOPIC, clients), max(0, asked.records - 10_000)
        show("first batch of all", asked.rounds, lambda: topic.last(0, WINDOW))
        show("a batch begins", asked.rounds, lambda: topic.end(0))
        again = show("one begins again", asked.rounds, lambda: topic.since(0, begin))
        print(f"which reads {len(again)} records")
    remember(asked.records, asked.rounds)


if __name__ == "__main__":
    main()

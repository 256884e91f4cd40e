"""What a deduplicating sink spends at the begin of a batch, reading what it holds already.

    python benchmarks/spark_once.py [--records 100000] [--bytes 200] [--since 10000]

A broker of its own and a topic with so many records, each with as many bytes and an id. A
process that begins its first batch reads the last 100,000 of them; a later batch reads what was
written since. Prints the median and the worst time of either, and what the ids take in memory.
"""

import argparse
import tracemalloc
from statistics import median
from time import perf_counter

from confluent_kafka import Producer

from sojourn.spark.broker import Broker
from sojourn.spark.cluster import Cluster
from sojourn.spark.sink_tail import SinkTail

TOPIC, WINDOW = "once", 100_000


def write(clients, first, number, size):
    """Write records as they come out of a chain of three operators."""
    producer = Producer({**clients, "linger.ms": 20})
    for place in range(first, first + number):
        identity = f"shop.orders@Xk3f9a2B-5f0c9e1a/0/{place}.price.0.taxed.0.checked.0"
        headers = [("sojourn-id", identity.encode()), ("sojourn-birth", b"1767225600.123456")]
        producer.produce(TOPIC, bytes(size), headers=headers)
        producer.poll(0)
        if place % 10_000 == 0:
            producer.flush()
    producer.flush()


def timed(end, clients):
    """Return how many records were read, and in which time."""
    began_s = perf_counter()
    number = end.read(clients)
    return number, perf_counter() - began_s


def show(what, runs):
    """Print what it took to read."""
    times_ms = [1e3 * took_s for _, took_s in runs]
    print(
        f"{what}: {runs[0][0]} records read in {median(times_ms):.0f} ms, "
        f"at worst {max(times_ms):.0f} ms"
    )


def main():
    """Write, read and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=WINDOW)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--since", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with Broker(secured=False) as broker:
        broker.create_topics({TOPIC: 1})
        clients = Cluster(broker.bootstrap_servers).for_clients
        write(clients, 0, asked.records, asked.bytes)
        ends = [SinkTail(TOPIC, WINDOW) for _ in range(asked.rounds)]
        show("first batch of a process", [timed(end, clients) for end in ends])
        show("nothing written since", [timed(end, clients) for end in ends])
        write(clients, asked.records, asked.since, asked.bytes)
        show("a later batch", [timed(end, clients) for end in ends])
        del ends
        tracemalloc.start()
        end = SinkTail(TOPIC, WINDOW)
        end.read(clients)
        print(f"the ids take {tracemalloc.get_traced_memory()[0] / 1e6:.0f} MB")


if __name__ == "__main__":
    main()

"""What is measured of nodes: how precise clocks are, and what counting costs.

    python benchmarks/node_measures.py [--quick] [--json FILE]

A host without Spark, and an agent behind a forwarder that delays what passes by 2 ms each way.
Both have the same clock, so the offset that is measured is the error: while nothing else is
sent, and while processors have all they can do. Then the time to count a frame, beside that to
write it, and to read the memory of a node.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from timeit import timeit

from node_cluster import PART, Cluster
from sojourn.spark.agent.resources import memory_here
from sojourn.spark.host.node_measures import Traffic
from sojourn.spark.wire.agent import Assign
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.processor import Assignment, OutputRecord, Result
from sojourn.spark.wire.record import Record

DELAY_S, NODE, PROCESSORS = 0.002, "executor-1", 4
SERVICE_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The largest error of the offset in so many looks, and the extent of round trips."""

    load: str
    looks: int
    worst_s: float
    least_round_trip_s: float
    most_round_trip_s: float


def node_now(cluster):
    """Return how the node is, as its host reports it."""
    cluster.controller.tallies()
    cluster.controller.ask()
    while not (told := cluster.controller.tallies()):
        time.sleep(0.005)
    return told[PART][-1].state.nodes[NODE]


def clock(load, cluster, looks, work):
    """Look once a second at what is measured, while there is *work*."""
    seen = []
    while len(seen) < looks:
        until_s = time.monotonic() + 1.0
        while time.monotonic() < until_s:
            work()
        state = node_now(cluster)
        if state.offset_s is not None:
            seen.append(state)
    return Clock(
        load=load,
        looks=looks,
        worst_s=max(abs(each.offset_s) for each in seen),
        least_round_trip_s=min(each.round_trip_s for each in seen),
        most_round_trip_s=max(each.round_trip_s for each in seen),
    )


def clocks(folder, looks):
    """Measure without and with load."""
    on = {NODE: PROCESSORS}
    with Cluster(folder, on, delay_s=DELAY_S) as cluster, cluster.relay() as relay:

        def bring():
            relay.bring([SERVICE_S] * 100)
            relay.await_all()

        return [
            clock("none", cluster, looks, lambda: time.sleep(0.1)),
            clock("all it can do", cluster, looks, bring),
        ]


def costs(times):
    """Return seconds for a frame: to write it, to count it there and back; and for memory."""
    traffic, record = Traffic(), Record("lines/0/1234567", b"x" * 100, "lines", root="r")
    records, results = [record], [Result([OutputRecord("words", b"x" * 100)])]
    message = Assign("split", 1, Assignment(records))
    return {
        "write_s": timeit(lambda: framed(message), number=times) / times,
        "to_s": timeit(lambda: traffic.gave(records, 180), number=times) / times,
        "back_s": timeit(lambda: traffic.got(results, 150), number=times) / times,
        "memory_s": timeit(memory_here, number=times // 1000) / (times // 1000),
    }


def show(found):
    """Print a table, and a line."""
    print("load            looks   worst error     round trip")
    for each in found["clocks"]:
        trips = f"{1e3 * each.least_round_trip_s:.1f} to {1e3 * each.most_round_trip_s:.1f} ms"
        print(f"{each.load:<15} {each.looks:>5} {1e3 * each.worst_s:>10.2f} ms {trips:>14}")
    us = {name: 1e6 * each_s for name, each_s in found["costs"].items()}
    print(
        f"\na frame with one record: {us['write_s']:.2f} µs to write, {us['to_s']:.2f} µs to "
        f"count, {us['back_s']:.2f} µs to count its result;\nthe memory of a node, once a "
        f"second: {us['memory_s']:.0f} µs"
    )


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see that all of it works")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = {
            "clocks": clocks(Path(temporary), 2 if asked.quick else 30),
            "costs": costs(2_000 if asked.quick else 200_000),
        }
    show(found)
    if asked.json is not None:
        told = found | {"clocks": [asdict(each) for each in found["clocks"]]}
        asked.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

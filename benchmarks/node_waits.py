"""Processors on other nodes: what the way to them adds to waits, throughput and CPU time.

    python benchmarks/node_waits.py [--quick] [--only waits] [--service 0.1] [--json FILE]

A host without Spark, and agents behind forwarders that delay what passes by 2 ms each way.
Prints how long records wait in one queue for twelve processors on three nodes, beside the host
and by theory; records per second of short services, with the CPU time of host and agent; and
what comes of records while processors move from one node to another.
"""

import argparse
import json
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from heapq import heapify, heapreplace
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from statistics import fmean, median

from node_cluster import Cluster
from sojourn.model.station import mmk
from sojourn.topology.load import StationLoad

DELAY_S, SEED = 0.002, 1
NODES, EACH = ("executor-1", "executor-2", "executor-3"), 4
K = len(NODES) * EACH
BUSY = (0.65, 0.85)
PARTS = ("waits", "throughput", "moves")
SHORT_S, SHORT_K = (0.001, 0.005, 0.02), 4
MOVED, MOVE_SERVICE_S, MOVE_PER_S = 8, 0.02, 200
QUIET_S = 1.0
# Results in close succession are gathered; after that time each leaves at once.
PAUSE_S = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Mean waits in the queue: by theory, computed for the same records, and measured."""

    busy: float
    records: int
    theory_s: float
    shared_s: float
    wired_s: float
    in_turn_s: float
    beside_s: float
    away_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Records per second of a service, and the CPU time of host and agent for each."""

    service_s: float
    beside_per_s: float
    away_per_s: float
    beside_host_s: float
    away_host_s: float
    away_agent_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What came of records while processors moved; what was lost or came twice until then."""

    records: int
    took_s: float
    gap_s: float
    usual_gap_s: float
    lost: int
    twice: int


def wait_s(arrivals_s, services_s, processors):
    """Return the mean wait of records that are served in order by the first that is free."""
    free_s, sum_s = [0.0] * processors, 0.0
    heapify(free_s)
    for at_s, service_s in zip(arrivals_s, services_s, strict=True):
        begins_s = max(at_s, free_s[0])
        sum_s += begins_s - at_s
        heapreplace(free_s, begins_s + service_s)
    return sum_s / len(arrivals_s)


def wait_in_turn_s(arrivals_s, services_s):
    """Return the mean wait where each node has a queue, and they get records in turn."""
    n = len(NODES)
    return fmean(wait_s(arrivals_s[i::n], services_s[i::n], EACH) for i in range(n))


def measured_wait_s(folder, on, arrivals_s, services_s):
    """Return the mean wait that the host reports."""
    with Cluster(folder, on, delay_s=DELAY_S) as cluster, cluster.relay() as relay:
        relay.bring([0.0] * K)  # whatever happens once, happens now
        relay.await_all()
        cluster.counts()
        relay.bring(services_s, at_s=arrivals_s)
        relay.await_all()
        served, waited_s = cluster.counts()
    if served != len(services_s):
        raise RuntimeError(f"{served} of {len(services_s)} records are counted")
    return waited_s / served


def waits(folder, busy, mean_s, records, round_trip_s):
    """Measure beside the host and away from it, at the same time."""
    chance, per_s = Random(SEED), busy * K / mean_s
    arrivals_s = list(accumulate(chance.expovariate(per_s) for _ in range(records)))
    services_s = [chance.expovariate(1 / mean_s) for _ in range(records)]
    wired_s = [service_s + round_trip_s for service_s in services_s]
    measured = {}

    def measure(name, on):
        measured[name] = measured_wait_s(folder / f"{name}-{busy}", on, arrivals_s, services_s)

    ways = {"beside": K, "away": dict.fromkeys(NODES, EACH)}
    threads = [threading.Thread(target=measure, args=way) for way in ways.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Waits(
        busy=busy,
        records=records,
        theory_s=mmk.wait_s(StationLoad(arrivals_per_s=per_s, service_s=mean_s), K),
        shared_s=wait_s(arrivals_s, services_s, K),
        wired_s=wait_s(arrivals_s, wired_s, K),
        in_turn_s=wait_in_turn_s(arrivals_s, services_s),
        beside_s=measured["beside"],
        away_s=measured["away"],
    )


def round_trip_s(folder, records):
    """Return what the way to a node and back adds to a record, with nothing else to do."""
    took_s = {}
    for name, on in (("beside", 1), ("away", {NODES[0]: 1})):
        each_s = []
        with Cluster(folder / name, on, delay_s=DELAY_S) as cluster, cluster.relay() as relay:
            for _ in range(records):
                time.sleep(PAUSE_S)
                began_s = time.perf_counter()
                relay.bring([0.0])
                relay.await_all()
                each_s.append(time.perf_counter() - began_s)
        took_s[name] = median(each_s)
    return took_s["away"] - took_s["beside"]


def carried(folder, on, service_s, lasts_s):
    """Return records per second, and the CPU time of host and agent for each."""
    some = [service_s] * 10 * SHORT_K
    records = [service_s] * int(lasts_s * SHORT_K / service_s)
    with Cluster(folder, on, delay_s=DELAY_S) as cluster, cluster.relay() as relay:
        relay.bring(some)
        relay.await_all()
        before, began_s = cluster.cpu_s(), time.perf_counter()
        relay.bring(records)
        relay.await_all()
        lasted_s, after = time.perf_counter() - began_s, cluster.cpu_s()
    host_s, agent_s = ((b - a) / len(records) for a, b in zip(before, after, strict=True))
    return len(records) / lasted_s, host_s, agent_s


def throughput(folder, service_s, lasts_s):
    """Measure both ways, one after the other."""
    beside = carried(folder / f"beside-{service_s}", SHORT_K, service_s, lasts_s)
    away = carried(folder / f"away-{service_s}", {NODES[0]: SHORT_K}, service_s, lasts_s)
    return Throughput(
        service_s=service_s,
        beside_per_s=beside[0],
        away_per_s=away[0],
        beside_host_s=beside[1],
        away_host_s=away[1],
        away_agent_s=away[2],
    )


def moves(folder, times):
    """Move processors there and back while records come."""
    here, there = NODES[:2]
    made = Cluster(folder, {here: MOVED}, delay_s=DELAY_S, nodes=(here, there))
    with made as cluster, cluster.relay() as relay:
        return [
            _moved(cluster, relay, {(there, here)[number % 2]: MOVED})
            for number in range(times)
        ]


def _moved(cluster, relay, on):
    """Move processors in the middle of a stream of records."""
    chance, over, first = Random(SEED), threading.Event(), relay.sent

    def bring():
        while not over.is_set():
            relay.bring([MOVE_SERVICE_S], at_s=[chance.expovariate(MOVE_PER_S)])

    bringing = threading.Thread(target=bring)
    bringing.start()
    time.sleep(QUIET_S)
    began_s = time.time()
    took_s = cluster.move(on)
    time.sleep(QUIET_S)
    over.set()
    bringing.join()
    relay.await_all()
    time.sleep(0.1)  # what comes twice comes late
    came_s = sorted(at_s for offset, at_s in relay.came.items() if offset >= first)
    before = sum(at_s < began_s for at_s in came_s)
    return Move(
        records=len(came_s),
        took_s=took_s,
        gap_s=_longest_gap_s(came_s[before - 1 :]),
        usual_gap_s=_longest_gap_s(came_s[:before]),
        lost=relay.sent - len(relay.came),
        twice=relay.results - len(relay.came),
    )


def _longest_gap_s(came_s):
    return max(later_s - s for s, later_s in pairwise(came_s))


def measure(folder, asked):
    """Return all that is measured."""
    way_s = round_trip_s(folder / "way", 20 if asked.quick else 100)
    records = 100 if asked.quick else asked.records
    lasts_s = 0.2 if asked.quick else 3.0
    times = 2 if asked.quick else 5
    mean_s = 0.02 if asked.quick else asked.service
    only = asked.only or PARTS
    return {
        "service_s": mean_s,
        "round_trip_s": way_s,
        "waits": [
            waits(folder, busy, mean_s, records, way_s) for busy in BUSY if "waits" in only
        ],
        "throughput": [throughput(folder, s, lasts_s) for s in SHORT_S if "throughput" in only],
        "moves": moves(folder / "moves", times) if "moves" in only else [],
    }


def _ms(seconds):
    return f"{1e3 * seconds:.1f}"


def show(found):
    """Print tables."""
    print(f"a way to a node and back: {_ms(found['round_trip_s'])} ms\n")
    if found["waits"]:
        print(
            f"mean wait in ms, {K} processors, services of {_ms(found['service_s'])} ms\n"
            "busy  Erlang C  one queue  and the way  queue a node  beside the host  three nodes"
        )
    for w in found["waits"]:
        print(
            f"{w.busy:4.0%} {_ms(w.theory_s):>9} {_ms(w.shared_s):>10} {_ms(w.wired_s):>12} "
            f"{_ms(w.in_turn_s):>13} {_ms(w.beside_s):>16} {_ms(w.away_s):>12}"
        )
    if found["throughput"]:
        print(
            f"\n{SHORT_K} processors with all they can do\n"
            "service  beside per s  away per s  host ms, beside  host ms, away  agent ms"
        )
    for t in found["throughput"]:
        print(
            f"{1e3 * t.service_s:4.0f} ms {t.beside_per_s:13.0f} {t.away_per_s:11.0f} "
            f"{1e3 * t.beside_host_s:16.2f} {1e3 * t.away_host_s:14.2f} "
            f"{1e3 * t.away_agent_s:9.2f}"
        )
    if each := found["moves"]:
        worst_s = {name: max(getattr(m, name) for m in each) for name in Move.__slots__}
        print(
            f"\n{MOVED} processors moved {len(each)} times, {MOVE_PER_S} records per s:\n"
            f"at worst in {worst_s['took_s']:.2f} s, longest gap {_ms(worst_s['gap_s'])} ms "
            f"(before {_ms(worst_s['usual_gap_s'])} ms),\n"
            f"{each[-1].lost} lost and {each[-1].twice} twice of {sum(m.records for m in each)}"
        )


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see that all of it works")
    parser.add_argument("--service", type=float, default=0.1, help="mean seconds")
    parser.add_argument("--records", type=int, default=3_000, help="of each wait")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure no more than")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = measure(Path(temporary), asked)
    show(found)
    if asked.json is not None:
        told = {
            name: [asdict(each) for each in some] if isinstance(some, list) else some
            for name, some in found.items()
        }
        asked.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return int(any(move.lost or move.twice for move in found["moves"]))


if __name__ == "__main__":
    raise SystemExit(main())

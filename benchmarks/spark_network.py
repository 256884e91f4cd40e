"""DRS-15, Fig. 8, on Spark: what the network adds, for small and large records.

    python benchmarks/spark_network.py [--per-s 8] [--rounds 2] [--blocks 4] [--block 2.5]
                                       [--short] [--json FILE]

Records with a binary column of 100 B to 500 kB go through two operators that work for 10 ms,
and those of 100 B and 100 kB also where they work for 100 ms; real Kafka, over its sockets.
For each, in several rounds: what roots take with its 95 % interval over blocks, what the model
predicts of service and queueing, from rates and service times that were measured, and what is
left: the network's, in all and for each of the two hops. Hosts measure what the way to them
takes, too: that is the prediction with transfers. It takes 3.5 min; --short 60 s.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from blocks import latency, observation_of, without_transfers
from producing import Producing, poisson_s
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.measure.observed import observed
from sojourn.model.network import mean_s
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine

ADDRESS = "network_app:app"
ALLOCATION = {"first": 3, "second": 3}
HOPS = len(ALLOCATION)
PHOTO = "sojourn-column-photo"

_BATCH_S = 3600.0
_SETTLING_S = 2.0
_LOOK_S = 0.5
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Case:
    """Records of one size that are worked on for so long, and what was counted of them."""

    size_bytes: int
    work_s: float
    pulls: list = field(default_factory=list, compare=False)

    @property
    def name(self):
        """The size, and the work."""
        size = f"{self.size_bytes} B"
        if self.size_bytes >= 1000:
            size = f"{self.size_bytes / 1000:g} kB"
        return f"{size}, {1e3 * self.work_s:g} ms"

    @property
    def mean(self):
        """What roots took."""
        return latency(self.pulls)


CASES = [(100, 0.01), (10_000, 0.01), (100_000, 0.01), (500_000, 0.01)]
WORKED_LONGER = [(100, 0.1), (100_000, 0.1)]


def measure(engine, topic, case, due_s, asked):
    """Measure *case* for some blocks."""
    photo = Random(case.size_bytes).randbytes(case.size_bytes)

    def made(number):
        return json.dumps({"number": number, "work_s": case.work_s}), [(PHOTO, photo)]

    with Producing(engine.servers, topic, due_s, made):
        begins_s = engine.now_s + _SETTLING_S
        engine.observe(begins_s)
        case.pulls.extend(
            engine.observe(begins_s + block * asked.block)
            for block in range(1, asked.blocks + 1)
        )
    until_s = engine.now_s + _PATIENCE_S
    while engine.now_s < until_s:
        pull = engine.observe(engine.now_s + _LOOK_S)
        if not pull.roots.completed and not any(r.backlog for r in pull.operators):
            return
    raise SystemExit(f"{case.name}: it cannot keep up; lower --per-s")


def row(case, topology):
    """Return what was measured of a case, and what was predicted."""
    observation = observation_of(case.pulls, topology)
    seen = observed(topology, observation)
    predicted_s, mean = mean_s(without_transfers(seen), ALLOCATION), case.mean
    rest_s = mean.value - predicted_s
    return {
        "case": case.name,
        "size_bytes": case.size_bytes,
        "work_s": case.work_s,
        "roots": observation.sums.number,
        "mean_s": mean.value,
        "half_width_s": mean.half_width,
        "service_s": sum(o.service_s for o in observation.operators.values()),
        "predicted_s": predicted_s,
        "with_transfers_s": mean_s(seen, ALLOCATION),
        "network_s": rest_s,
        "network_ratio": rest_s / mean.value,
        "per_hop_s": rest_s / HOPS,
    }


def show(rows):
    """Print what was measured."""
    print(
        f"{'record, work each':<18}{'roots':>6}{'measured, ms':>17}{'service':>9}"
        f"{'predicted':>11}{'ratio':>7}{'network':>9}{'share':>7}{'per hop':>9}"
        f"{'with transfers':>16}{'off':>8}"
    )
    for told in rows:
        mean = f"{1e3 * told['mean_s']:.1f} ±{1e3 * told['half_width_s']:.1f}"
        print(
            f"{told['case']:<18}{told['roots']:6d}{mean:>17}{1e3 * told['service_s']:9.1f}"
            f"{1e3 * told['predicted_s']:11.1f}{told['mean_s'] / told['predicted_s']:7.2f}"
            f"{1e3 * told['network_s']:9.1f}{told['network_ratio']:7.0%}"
            f"{1e3 * told['per_hop_s']:9.1f}{1e3 * told['with_transfers_s']:16.1f}"
            f"{told['with_transfers_s'] / told['mean_s'] - 1:+8.1%}"
        )
    print(
        "service: both operators, as hosts measured it, reading and writing the record "
        "included\npredicted: service and queueing; ratio: measured to predicted; "
        "network: what is left, in ms\nwith transfers: predicted with what hosts measured of "
        "the way to them, and how far that is off"
    )


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--per-s", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=4, help="in a round, of each size")
    parser.add_argument("--block", type=float, default=2.5, metavar="SECONDS")
    parser.add_argument("--short", action="store_true", help="one round of short blocks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if asked.short:
        asked.rounds, asked.blocks, asked.block = 1, 2, 2.0
    # hosts look for the application where we do
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    app = load(ADDRESS)
    topology, topic = app.topology({"roots": asked.per_s}), app.topic("roots")
    cases = [Case(*some) for some in CASES + WORKED_LONGER]
    lasts_s = _SETTLING_S + asked.blocks * asked.block + _LOOK_S
    settings = SparkSettings(batch_s=_BATCH_S, trace_per_s=1e6, broker_secured=False)
    with SparkEngine(app, ADDRESS, settings) as engine:
        engine.start(topology, Plan.here(ALLOCATION))
        for number in range(-1, asked.rounds):  # in the first Java is slow; it does not count
            due_s = poisson_s(asked.per_s, seed=number, lasts_s=lasts_s)
            for case in cases[:1] if number < 0 else cases:
                sys.stderr.write(f"round {number + 1}: {case.name}\n")
                measure(engine, topic, case, due_s, asked)
            if number < 0:
                cases[0].pulls.clear()
        restarts = sum(engine.health().restarts.values())
    rows = [row(case, topology) for case in cases]
    print(f"{asked.per_s:g} roots per second, two operators; restarts: {restarts}\n")
    show(rows)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

"""A split, a join, a loop and a broadcast on Spark, against the traffic equations.

    python benchmarks/spark_loop.py [--roots 900] [--per-s 15] [--short] [--json FILE]

Runs `loop_app.py` and prints, for each operator, the records that reach it per second: by
Kafka's offsets, by what hosts served, and by the traffic equations, with the numbers sent that
were measured and with those that were designed. Then whether every tree is complete, what
came out at the sinks, and how often records went round the loop. It takes 90 s; --short 60 s.
"""

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from scipy.stats import chisquare

from producing import Producing, poisson_s
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.measure.report import Pull
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology import Topology
from sojourn.topology.traffic import rates
from sojourn_trial.applications import loop_app

ADDRESS = "sojourn_trial.applications.loop_app:app"
ALLOCATION = {"split": 1, "left_side": 2, "right_side": 1, "join": 2, "audit": 2}
PHOTO = "sojourn-column-photo"
_PATIENCE_S = 180.0
_LOOK_S = 0.2
# Java is slow at first, and what waits then is worked off later.
_WARM_UP_S = 8.0
_BATCH_S = 20.0
# A level of the loop that fewer records should reach is counted with the one above.
_LEAST_EXPECTED = 5


@dataclass(frozen=True)
class Leaf:
    """A record at a sink."""

    identity: str
    content: dict
    photo: bytes | None


@dataclass(frozen=True)
class Ran:
    """What was counted while the roots went through, and what came out."""

    topology: Topology
    pulls: list[Pull]
    steady: list[Pull]
    load_s: float
    done: list[Leaf]
    audited: list[Leaf]
    open: int
    forgotten: int
    restarts: dict[str, int]

    @property
    def entered(self):
        """The roots that entered."""
        return sum(pull.roots.entered for pull in self.pulls)

    @property
    def completed(self):
        """The roots whose tree was seen to be complete."""
        return sum(pull.roots.completed for pull in self.pulls)

    def arrived(self, name, pulls=None):
        """Return the records that reached an operator, as they were counted on the way."""
        return sum(sum(_report(pull, name).arrivals) for pull in pulls or self.pulls)

    def served(self, name, pulls=None):
        """Return the records that hosts served; one that all processors get counts once."""
        served = sum(
            processor.served
            for pull in pulls or self.pulls
            for processor in _report(pull, name).processors
        )
        return served / ALLOCATION[name] if name == "audit" else served


def _report(pull, name):
    return next(report for report in pull.operators if report.name == name)


def ran(number, per_s, *, photos=None, settings=None):
    """Return what became of *number* roots; *photos* are binary columns by root."""
    app = load(ADDRESS)
    topology = app.topology({"roots": per_s})
    told = {"trace_per_s": 1e6, "batch_s": _BATCH_S} | (settings or {})

    def made(root):
        photo = (photos or {}).get(root)
        return json.dumps({"number": root}), [(PHOTO, photo)] if photo is not None else []

    with SparkEngine(app, ADDRESS, SparkSettings(**told, broker_secured=False)) as engine:
        engine.start(topology, Plan.here(ALLOCATION))
        due_s = poisson_s(per_s, seed=1, number=number)
        pulls, steady = [], []
        with Producing(engine.servers, app.topic("roots"), due_s, made) as producing:
            began_s = engine.now_s
            while producing.running:
                pulls.append(engine.observe(engine.now_s + 1.0))
                if pulls[-1].since_s >= began_s + _WARM_UP_S and producing.running:
                    steady.append(pulls[-1])
        until_s = engine.now_s + _PATIENCE_S
        while sum(p.roots.completed for p in pulls) < number and engine.now_s < until_s:
            pulls.append(engine.observe(engine.now_s + 1.0))
        pulls.append(engine.observe(engine.now_s + 1.0))
        topics = [app.topic(stream) for stream in ("done", "audit")]
        offsets = Offsets(Cluster(engine.servers).client(), dict.fromkeys(topics, 1))
        ends = {topic: sum(parts.values()) for topic, parts in offsets.look().items()}
        health = engine.health()
        return Ran(
            topology=topology,
            pulls=pulls,
            steady=steady,
            load_s=due_s[-1],
            done=_leaves(engine.servers, app.topic("done"), ends),
            audited=_leaves(engine.servers, app.topic("audit"), ends),
            open=health.trees_open,
            forgotten=health.trees_forgotten,
            restarts={o: n for o, n in engine.health().restarts.items() if n},
        )


def _leaves(servers, topic, ends):
    """Return all that is in a topic."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "leaves", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    leaves = []
    while len(leaves) < ends[topic]:
        for message in consumer.consume(500, _LOOK_S):
            headers = dict(message.headers())
            leaves.append(
                Leaf(
                    headers["sojourn-id"].decode(),
                    json.loads(message.value()),
                    headers.get(PHOTO),
                )
            )
            if len(leaves) == ends[topic]:
                break
    consumer.close()
    return leaves


def expected(number):
    """Return how many records must reach each operator, by content, and the loop's depths."""
    reached, depths = Counter(split=number, audit=number), Counter()
    for root in range(number):
        for path in loop_app.paths(root):
            depth = 0
            while loop_app.goes_back(root, path, depth):
                depth += 1
            depths[depth] += 1
            reached["join"] += depth + 1
            reached["left_side"] += depth + (path == "left")
            reached["right_side"] += path != "left"
    return dict(reached), dict(depths)


def measured_gains(run):
    """Return the records sent from operator to operator for each record served.

    What all send to one operator has the factor by which what came differs from the design.
    """
    designed = run.topology.gains
    sent = {name: run.served(name) for name in designed}
    factors = {}
    for reader in designed:
        roots = run.entered if reader == "split" else 0
        expected = sum(sent[name] * to.get(reader, 0.0) for name, to in designed.items())
        factors[reader] = (run.arrived(reader) - roots) / expected if expected else 0.0
    return {
        name: {reader: mean * factors[reader] for reader, mean in to.items()}
        for name, to in designed.items()
    }


def compared(run, pulls, lasted_s):
    """Return a row for each operator: measured rates, and those of the traffic equations."""
    root_per_s = sum(pull.roots.entered for pull in pulls) / lasted_s
    by_measured = rates({"split": root_per_s}, measured_gains(run))
    by_design = rates({"split": root_per_s}, run.topology.gains)
    return [
        {
            "operator": name,
            "offsets_per_s": run.arrived(name, pulls) / lasted_s,
            "hosts_per_s": run.served(name, pulls) / lasted_s,
            "by_measured_per_s": by_measured[name],
            "by_design_per_s": by_design[name],
        }
        for name in run.topology.operator
    ]


def depths_of(run):
    """Return how often records went round, by number of rounds."""
    return dict(sorted(Counter(leaf.content["depth"] for leaf in run.done).items()))


def geometric(depths, back):
    """Return observed and expected numbers by depth, deep ones together, and the p-value."""
    total, first = sum(depths.values()), 0
    while total * back ** (first + 1) >= _LEAST_EXPECTED:
        first += 1
    seen = [depths.get(depth, 0) for depth in range(first)]
    should = [total * (1 - back) * back**depth for depth in range(first)]
    seen.append(total - sum(seen))
    should.append(total * back**first)
    return seen, should, float(chisquare(seen, should).pvalue) if first else 1.0


def table(title, rows):
    """Print rates, and how far the measured ones are off: those of offsets, of hosts."""
    print(
        f"records per second, {title}\n"
        f"{'operator':<12}{'offsets':>9}{'hosts':>9}"
        f"{'equations, measured':>29}{'equations, designed':>29}"
    )
    worst = 0.0
    for row in rows:
        line = f"{row['operator']:<12}{row['offsets_per_s']:9.2f}{row['hosts_per_s']:9.2f}"
        for key in ("by_measured_per_s", "by_design_per_s"):
            off = [row[of] / row[key] - 1 for of in ("offsets_per_s", "hosts_per_s")]
            line += f"{row[key]:12.2f} ({off[0]:+6.1%}, {off[1]:+6.1%})"
            worst = max(worst, *map(abs, off))
        print(line)
    print(f"furthest off: {worst:.1%} (aim: below 5 %)\n")


def backlogs(run):
    """Return the records that waited when the steady part began and when it ended."""
    return [sum(report.backlog for report in run.steady[i].operators) for i in (0, -1)]


def main():
    """Run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--roots", type=int, default=900)
    parser.add_argument("--per-s", type=float, default=15.0)
    parser.add_argument("--short", action="store_true", help="300 roots, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    number = 300 if asked.short else asked.roots
    # hosts look for the application where we do
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    sys.stderr.write(f"{number} roots at {asked.per_s:g} per second, on Spark\n")
    run = ran(number, asked.per_s)
    reached, _ = expected(number)
    whole = compared(run, run.pulls, run.load_s)
    table("all that came of all roots over the time of the load", whole)
    steady = []
    if run.steady:
        steady_s = sum(pull.at_s - pull.since_s for pull in run.steady)
        steady = compared(run, run.steady, steady_s)
        table(f"counted in {steady_s:.0f} s after the first {_WARM_UP_S:g} s", steady)
        print("waiting when that began and when it ended: {} and {}".format(*backlogs(run)))
    print("all records, from the first to the last")
    print(f"{'operator':<12}{'by content':>12}{'offsets':>9}{'hosts':>9}")
    for name in run.topology.operator:
        counted = f"{run.arrived(name):9d}{run.served(name):9g}"
        print(f"{name:<12}{reached[name]:12d}{counted}")
    print(
        f"roots entered {run.entered}, trees completed {run.completed}, open {run.open}, "
        f"forgotten {run.forgotten}; restarts {run.restarts or 'none'}"
    )
    for name, leaves in (("done", run.done), ("audit", run.audited)):
        different = len({leaf.identity for leaf in leaves})
        print(f"sink {name}: {len(leaves)} records, {different} different ids")
    depths = depths_of(run)
    seen, should, p_value = geometric(depths, run.topology.gains["join"]["left_side"])
    print(
        f"rounds in the loop {seen}, geometric {[round(n, 1) for n in should]} (the last: "
        f"that many or more); chi-square p {p_value:.2f}"
    )
    if asked.json:
        told = {
            "rates": whole,
            "steady_rates": steady,
            "entered": run.entered,
            "completed": run.completed,
            "open": run.open,
            "forgotten": run.forgotten,
            "depths": depths,
            "p_value": p_value,
        }
        asked.json.write_text(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()

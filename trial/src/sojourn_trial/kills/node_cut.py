"""A machine is disconnected from the network under load, and reconnected later.

    python benchmarks/spark_node_cut.py [--cuts 2] [--for 90] [--nodes 3] [--per-s 40] [--short]

Each cut is of the machine that runs most tasks of the queries. Its connections stay open and
its processes continue: after the reconnection, its tasks, processors and Kafka producers
resume. For each cut it prints the longest time without results, the time until results took
less than three seconds again, and the number of restarts of queries. Each order must be counted
once, in a state by key; the sink with `deduplicate=True` must have no duplicates.

It needs network namespaces: Linux and root.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from pyspark.sql import SparkSession

from sojourn.decide.plan import Plan
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.load.offered_load import Load, load_sources
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.nodes.executors import executors
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.applications import node_cut_app
from sojourn_trial.applications.node_cut_app import ONCE, PLAIN, outcome
from sojourn_trial.cases.sink import Sink
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.cluster.trial_network import why_not
from sojourn_trial.kills.ledger import Outcome
from sojourn_trial.kills.node_death import rest
from sojourn_trial.kills.trial import say, spark_on

ADDRESS = "sojourn_trial.applications.node_cut_app:app"
# The end of a batch takes about a second, or more on a busy machine; that is not late.
CALM_S, AFTER_S, LATE_S, PATIENCE_S = 20.0, 60.0, 3.0, 240.0


@dataclass(frozen=True)
class Cut:
    """The effect of one cut."""

    tasks: int
    """Tasks on the machine."""
    gap_s: float
    """The longest time without results at the plain sink."""
    once_gap_s: float
    """The longest time without results at the deduplicated sink."""
    late_s: float
    """Time from the cut until results took no longer than `LATE_S` again."""
    restarts: int
    """Restarts of queries."""

    def __str__(self):
        return (
            f"{self.tasks} tasks there; no result for {self.gap_s:.1f} s, at the deduplicated "
            f"sink for {self.once_gap_s:.1f} s; results within {LATE_S:g} s again after "
            f"{self.late_s:g} s; {self.restarts} restarts"
        )


def longest_gap_s(arrived, since_s, until_s):
    """Return the longest time without an arrival.

    >>> from types import SimpleNamespace as Order
    >>> longest_gap_s([Order(read_s=at_s) for at_s in (1.0, 2.0, 7.0, 8.0)], 1.5, 10.0)
    5.0
    """
    at_s = [each.read_s for each in arrived if since_s < each.read_s < until_s]
    return max(after - before for before, after in pairwise([since_s, *at_s, until_s]))


def late_until_s(arrived, since_s):
    """Return the seconds from *since_s* to the last birth whose result took over `LATE_S`."""
    late = [each.birth_s for each in arrived if each.birth_s > since_s and each.took_s > LATE_S]
    return max(0.0, max(late, default=since_s) - since_s)


def busiest(cluster):
    """Return the number of the worker with the most tasks, and the number of tasks."""
    tasks = {each.host: each.tasks for each in executors(SparkSession.getActiveSession())}
    worker = max(cluster.workers, key=lambda each: tasks.get(each.address, 0))
    return worker.number, tasks.get(worker.address, 0)


def cut_off(engine, cluster, sinks, lasts_s):
    """Disconnect a machine for *lasts_s*, and return the effect."""
    number, tasks = busiest(cluster)
    before, cut_s = sum(engine.health().restarts.values()), time.time()
    cluster.cut(number)
    try:
        rest(engine, lasts_s)
    finally:
        cluster.mend(number)
    mended_s = time.time()
    rest(engine, AFTER_S)
    plain, once = (list(sink.arrived) for sink in sinks)
    done = Cut(
        tasks=tasks,
        gap_s=longest_gap_s(plain, cut_s, mended_s),
        once_gap_s=longest_gap_s(once, cut_s, mended_s),
        late_s=late_until_s(plain, cut_s),
        restarts=sum(engine.health().restarts.values()) - before,
    )
    say(f"worker {number}: {done}; {', '.join(engine.health().notices) or 'no notices'}")
    return done


def settled(engine, servers):
    """Return the outcomes of both sinks once nothing is lost, or after `PATIENCE_S`."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        found = [outcome(servers, topic) for topic in (PLAIN, ONCE)]
        if not any(each.lost for each in found) or time.monotonic() > until_s:
            return found
        rest(engine, 1.0)


def run(
    folder, *, nodes=3, cuts=2, lasts_s=90.0, per_s=40.0
) -> tuple[list[Cut], list[Outcome]]:
    """Return the effect of each cut, and the outcomes of both sinks, the plain one first."""
    app = node_cut_app.app
    processors = 2 + int(1.5 * per_s * node_cut_app.SERVICE_S)
    with (
        TrialCluster(nodes, cores=6, folder=folder / "cluster") as cluster,
        Broker(secured=False, host=cluster.driver_address) as broker,
    ):
        spark, servers = spark_on(cluster), broker.bootstrap_servers
        settings = SparkSettings(
            servers=servers,
            state=folder / "state",
            partitions=nodes,
            batch_s=10.0,
            master=spark.pop("spark.master"),
            spark=spark,
        )
        rates = {"orders": ((0.0, per_s), (3600.0, per_s))}
        load = Load(servers=servers, sources=load_sources(app, ADDRESS, rates))
        with SparkEngine(app, ADDRESS, settings) as engine:
            first = Plan.here({"check": processors, "count": nodes})
            engine.start(app.topology({"orders": per_s}), first)
            sinks = [Sink(servers, [topic], group=topic) for topic in (PLAIN, ONCE)]
            try:
                with LoadProcess(load):
                    rest(engine, CALM_S)
                    calm_s = fmean(each.took_s for each in sinks[0].arrived[-200:])
                    say(f"{per_s:g} orders per second take {calm_s:.2f} s on average")
                    done = [cut_off(engine, cluster, sinks, lasts_s) for _ in range(cuts)]
                return done, settled(engine, servers)
            finally:
                for sink in sinks:
                    sink.close()


def main():
    """Run, print, and return 1 if results are lost or wrong, or deduplication failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=2)
    parser.add_argument("--for", type=float, default=90.0, dest="lasts_s")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--per-s", type=float, default=40.0)
    parser.add_argument("--short", action="store_true", help="one cut, to see that it runs")
    asked = parser.parse_args()
    if reason := why_not():
        parser.exit(3, f"a machine cannot be cut off: {reason}\n")
    with tempfile.TemporaryDirectory(prefix="node-cut-") as folder:
        cuts, (plain, once) = run(
            Path(folder),
            nodes=asked.nodes,
            cuts=1 if asked.short else asked.cuts,
            lasts_s=asked.lasts_s,
            per_s=asked.per_s,
        )
    for number, each in enumerate(cuts, start=1):
        print(f"cut {number}: {each}")
    print(f"plain sink: {plain}")
    print(f"deduplicated sink: {once}")
    return int(bool(plain.lost or plain.wrong) or not once.exact)

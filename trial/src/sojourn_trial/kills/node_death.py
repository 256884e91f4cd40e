"""The time from the death of a machine under load until the target is met again.

    python benchmarks/spark_node_death.py [--kills 4] [--nodes 3] [--busy 0.65] [--short]

Processors run on the nodes of a trial cluster with the utilisation --busy. Repeatedly, a worker
and all processes on its machine are killed (`kill -9`), and a new worker is started. The target
is twice the mean service time; it is missed if the orders of one second exceed it on average.
For each kill it prints the seconds until the target was met again, and whether the query was
restarted because a task of it ran on the machine. Each order must be counted once, in a state
by key.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import fmean

from sojourn.decide.plan import Plan
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.load.offered_load import Load, load_sources
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.applications import node_death_app
from sojourn_trial.cases.sink import Sink
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.kills.ledger import compare, written
from sojourn_trial.kills.trial import say, spark_on

ADDRESS = "sojourn_trial.applications.node_death_app:app"
PER_NODE, TARGET_S = 4, 2 * node_death_app.SERVICE_S
CALM_S, WINDOW_S, PATIENCE_S = 20.0, 1.0, 180.0


def outside_s(arrived, killed_s, until_s):
    """Return the seconds from *killed_s* to the end of the last window above the target.

    >>> from types import SimpleNamespace as Order
    >>> tenths = range(90)
    >>> orders = [Order(birth_s=n / 10, took_s=5.0 if n < 35 else 0.3) for n in tenths]
    >>> outside_s(orders, 1.0, 9.0)
    3.0
    """
    took_s = {}
    for each in arrived:
        took_s.setdefault(int((each.birth_s - killed_s) // WINDOW_S), []).append(each.took_s)
    late = [
        window + 1
        for window in range(int((until_s - killed_s) / WINDOW_S))
        if fmean(took_s.get(window, [0.0])) > TARGET_S
    ]
    return WINDOW_S * max(late, default=0)


def await_nodes(engine, number):
    """Wait until *number* nodes have processors, and all processors run."""
    until_s = time.monotonic() + PATIENCE_S
    while len(engine.nodes) != number or any(
        engine.health().running[name] < k for name, k in engine.plan.allocation.items()
    ):
        if time.monotonic() > until_s:
            raise SystemExit(f"{len(engine.nodes)} of {number} nodes after {PATIENCE_S:g} s")
        engine.observe(engine.now_s + 0.5)


def rest(engine, lasts_s):
    """Observe the engine for *lasts_s*."""
    until_s = engine.now_s + lasts_s
    while engine.now_s < until_s:
        engine.observe(engine.now_s + 1.0)


def killed(engine, cluster, sink, nodes):
    """Kill a machine and add another; return the seconds outside the target, and restarts."""
    workers = [worker.number for worker in cluster.workers]
    before, killed_s = sum(engine.health().restarts.values()), time.time()
    cluster.kill(workers[0])
    rest(engine, CALM_S)
    cluster.add()
    await_nodes(engine, nodes)
    restarts = sum(engine.health().restarts.values()) - before
    seconds = outside_s(list(sink.arrived), killed_s, time.time() - 3 * TARGET_S)
    say(f"worker {workers[0]}: {seconds:g} s, {restarts} restarts")
    return seconds, restarts


def run(folder, *, nodes, kills, busy):
    """Return seconds and restarts of each kill, the mean latency before, and the outcome."""
    processors = nodes * PER_NODE
    per_s = busy * processors / node_death_app.SERVICE_S
    app = node_death_app.app
    with (
        TrialCluster(nodes, cores=6, folder=folder / "cluster", plain=True) as cluster,
        Broker(secured=False) as broker,
    ):
        spark = spark_on(cluster)
        servers = broker.bootstrap_servers
        settings = SparkSettings(
            servers=servers,
            state=folder / "state",
            partitions=2,
            batch_s=10.0,
            master=spark.pop("spark.master"),
            spark=spark,
        )
        rates = {"orders": ((0.0, per_s), (3600.0, per_s))}
        load = Load(servers=servers, sources=load_sources(app, ADDRESS, rates))
        with SparkEngine(app, ADDRESS, settings) as engine:
            first = Plan.here({"check": processors, "count": 1})
            engine.start(app.topology({"orders": per_s}), first)
            sink = Sink(servers, [app.topic("count")])
            try:
                with LoadProcess(load):
                    rest(engine, CALM_S)
                    calm = sink.arrived[len(sink.arrived) // 2 :]
                    calm_s = fmean(each.took_s for each in calm)
                    say(f"{per_s:g} orders per second take {calm_s:.2f} s on average")
                    outcomes = [killed(engine, cluster, sink, nodes) for _ in range(kills)]
            finally:
                sink.close()
            until_s = time.monotonic() + PATIENCE_S
            while (wrong := found(servers, app)).lost and time.monotonic() < until_s:
                rest(engine, 1.0)
        return outcomes, calm_s, wrong


def found(servers, app):
    """Compare the counts with the orders that were sent."""
    due = Counter(
        json.loads(each)["customer"] for each in written(servers, app.topic("orders"))
    )
    expected = [(key, n + 1) for key, number in due.items() for n in range(number)]
    came = (tuple(json.loads(each).values()) for each in written(servers, app.topic("count")))
    return compare(expected, came)


def main():
    """Run, print, and return 1 if a count is lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--busy", type=float, default=0.65)
    parser.add_argument("--short", action="store_true", help="one kill, to see that it runs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="node-death-") as folder:
        kills = 1 if asked.short else asked.kills
        outcomes, calm_s, wrong = run(
            Path(folder), nodes=asked.nodes, kills=kills, busy=asked.busy
        )
    print(f"mean before: {calm_s:.2f} s, target: {TARGET_S:g} s")
    for number, (seconds, restarts) in enumerate(outcomes, start=1):
        query = "query started again" if restarts else "query went on"
        print(f"kill {number}: target holds again after {seconds:g} s ({query})")
    print(wrong)
    return int(bool(wrong.lost or wrong.wrong))

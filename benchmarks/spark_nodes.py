"""Nodes that come and go under load: nothing may be lost, and nothing repeated.

    python benchmarks/spark_nodes.py [--times 20] [--nodes 3] [--short]

An application on a trial cluster gets many processors and few in turns, so that executors are
asked for and given back, between one and so many. Lines are sent all the while. Prints how long
each change took until the nodes were there, or gone, and what is wrong at a plain sink.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from sojourn.act.policy.static import Static
from sojourn.decide.plan import Plan
from sojourn.loop import Loop
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.applications import nodes_app
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.kills.trial import say, spark_on
from sojourn_trial.kills.victims import on_nodes

PER_NODE, CALM_S, TOGETHER, EVERY_S, PATIENCE_S = 4, 3.0, 40, 2.0, 300.0


class Load:
    """Sends lines until it is ended."""

    def __init__(self, servers):
        self._servers, self.sent, self._ended = servers, 0, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self):
        while not self._ended.wait(EVERY_S):
            nodes_app.send(self._servers, self.sent, TOGETHER)
            self.sent += TOGETHER

    def end(self):
        """Return how many lines were sent."""
        self._ended.set()
        self._thread.join()
        return self.sent


def changed_s(loop, engine, folder, nodes):
    """Return how long it took until so many nodes were there, and no other executor."""
    processors = {"split": 1, "count": nodes * PER_NODE - 1}
    began_s = time.monotonic()
    loop.set_processors(processors, "the benchmark wants them")
    while len(engine.nodes) != nodes or len(on_nodes(folder, "agent")) != nodes:
        loop.turn()
        if time.monotonic() > began_s + PATIENCE_S:
            raise SystemExit(f"{len(engine.nodes)} of {nodes} nodes after {PATIENCE_S:g} s")
    return time.monotonic() - began_s


def run(folder, times, nodes):
    """Return the seconds of each growth and shrinking, what is wrong, and restarts."""
    with (
        TrialCluster(nodes, cores=6, folder=folder / "cluster", plain=True) as cluster,
        Broker(secured=False) as broker,
    ):
        spark = spark_on(cluster)
        settings = SparkSettings(
            servers=broker.bootstrap_servers,
            state=folder / "state",
            batch_s=5.0,
            partitions=2,
            master=spark.pop("spark.master"),
            spark=spark,
            max_nodes=nodes,
            processors_per_node=PER_NODE,
            node_calm_s=CALM_S,
        )
        grown_s, shrunk_s = [], []
        with SparkEngine(
            nodes_app.app, "sojourn_trial.applications.nodes_app:app", settings
        ) as engine:
            topology = nodes_app.app.topology({"lines": 10.0})
            engine.start(topology, Plan.here({"split": 1, "count": 3}))
            loop = Loop(engine, topology, Static(), every_s=0.2, bounds=settings.bounds(2))
            load = Load(settings.servers)
            for number in range(times):
                shrunk_s.append(changed_s(loop, engine, folder, 1))
                grown_s.append(changed_s(loop, engine, folder, nodes))
                say(f"{number + 1}: {shrunk_s[-1]:.1f} s to one, {grown_s[-1]:.1f} s to all")
            sent, until_s = load.end(), time.monotonic() + PATIENCE_S
            while (found := nodes_app.outcome(settings.servers, sent)).lost:
                if time.monotonic() > until_s:
                    break
                time.sleep(1.0)
            restarts = sum(engine.health().restarts.values())
    return grown_s, shrunk_s, found, restarts


def main():
    """Run, print, and fail if something is lost or repeated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="once, to see that it runs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nodes-") as temporary:
        folder = Path(temporary)
        times = 1 if asked.short else asked.times
        grown_s, shrunk_s, found, restarts = run(folder, times, asked.nodes)
        left = on_nodes(folder, "agent")
    print(f"1 to {asked.nodes} nodes {times} times: median {median(grown_s):.1f} s")
    print(
        f"back to 1: median {median(shrunk_s):.1f} s, of which {CALM_S:g} s for each are calm"
    )
    print(f"{found}; {restarts} restarts; {len(left)} agents left")
    return int(not found.exact or bool(left))


if __name__ == "__main__":
    sys.exit(main())

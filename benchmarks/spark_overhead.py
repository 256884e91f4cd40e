"""What measuring costs on Spark: CPU seconds per record with it and without.

    python benchmarks/spark_overhead.py [--rounds 100] [--per-s 100] [--short]

One run of a chain of three operators without work; in turns it is measured, and looked at
every second, and is not. CPU is that of the hosts, and that of everything: hosts, Spark,
broker, the load and the loop itself. Turns are short, and each pair begins with the other
one, so that what drifts drifts in both; no batch ends meanwhile. The default run takes seven
minutes.
"""

import argparse
import time
from math import sqrt
from statistics import fmean, stdev

import psutil

import chain
from sojourn.decide.plan import Plan
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.cases.sink import load_of
from spark_chain import topology_of


def cpu_s(processes):
    """Return the CPU seconds of *processes* so far."""
    # the clock of a process, as Linux numbers it: psutil's has ticks of 10 ms
    return sum(time.clock_gettime((~process.pid << 3) | 2) for process in processes)


def hosts_of(engine):
    """Return the processes of all hosts."""
    found = []
    for pid in {engine.host_pid(name) for name in chain.app.operators}:
        host = psutil.Process(pid)
        found += [host, *host.children(recursive=True)]
    return found


def span(engine, offsets, processes, lasts_s, *, on):
    """Return CPU milliseconds per record, of each group of processes, over some time."""
    topic = chain.app.topic("third")
    engine.measure(on=on)
    began = sum(offsets.partitions()[topic].values())
    before = [cpu_s(some) for some in processes]
    for _ in range(round(lasts_s)):
        if on:
            engine.observe(engine.now_s + 1.0)  # as the loop does it
        else:
            time.sleep(1.0)
    records = sum(offsets.partitions()[topic].values()) - began
    return [
        1e3 * (cpu_s(some) - earlier) / records
        for some, earlier in zip(processes, before, strict=True)
    ]


def more(with_, without):
    """Return by what part the first are above the second, and its 95 % confidence interval."""
    differences = [a - b for a, b in zip(with_, without, strict=True)]
    scale = fmean(without)
    half = 2.0 * stdev(differences) / sqrt(len(differences))
    return fmean(differences) / scale, half / scale


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--per-s", type=float, default=100.0)
    parser.add_argument("--lasts", type=float, default=2.0, help="seconds of each turn")
    parser.add_argument("--short", action="store_true", help="10 rounds: does it work?")
    asked = parser.parse_args()
    rounds = 10 if asked.short else asked.rounds
    topology = topology_of(asked.per_s)
    with Broker(secured=False) as broker:
        servers = broker.bootstrap_servers
        settings = SparkSettings(servers=servers, starting="latest", batch_s=3600.0)
        with SparkEngine(chain.app, "chain:app", settings) as engine:
            engine.start(topology, Plan.here(dict.fromkeys(chain.app.operators, 1)))
            offsets = Offsets(Cluster(servers).client(), {chain.app.topic("third"): 1})
            with load_of(topology, chain.app, servers, gaps="constant"):
                time.sleep(5 if asked.short else 20)
                everything = [psutil.Process(), *psutil.Process().children(recursive=True)]
                processes = [hosts_of(engine), everything]
                found = {True: [], False: []}
                for number in range(rounds):
                    for on in (True, False) if number % 2 else (False, True):
                        found[on].append(span(engine, offsets, processes, asked.lasts, on=on))
    for place, name in enumerate(("hosts", "everything")):
        with_ = [turn[place] for turn in found[True]]
        without = [turn[place] for turn in found[False]]
        mean, half = more(with_, without)
        print(
            f"{name}: {fmean(with_):.3f} ms of CPU per record with, {fmean(without):.3f} ms "
            f"without: {100 * mean:+.1f} % ± {100 * half:.1f}"
        )


if __name__ == "__main__":
    main()

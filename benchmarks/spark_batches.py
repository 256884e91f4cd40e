"""What the end of a batch costs: all that is open is written to disk, and Spark commits.

    python benchmarks/spark_batches.py [--rounds 3] [--batch 15] [--batches 5] [--short]
    python benchmarks/spark_batches.py --commits [--rounds 3] [--batches 12] [--short]

examples/vld.yaml (operators of 0.5, 0.55 and 0.02 s) at 26 roots per second with 18:20:1
processors, without the loop. Spark commits a batch every 15 s, or none ends while it runs. Both
in turn, with the same load.
Prints the latency of roots, and of seconds (by birth) the part that is above a target 25 %
above the sum of service times.

With --commits: one operator that passes 50 records per second on, batches of 5 s, each of them
committed before the next one begins, as we have it, and meanwhile, as Spark does by default; in
turn. Prints how long nothing arrives when a batch ends.
"""

import argparse
import sys
from pathlib import Path
from statistics import fmean

import numpy as np

import throughput_app
from sojourn.app.loading import load
from sojourn.app.operator import Hints
from sojourn.decide.plan import Plan
from sojourn.spark.driver.query import real_time
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology
from sojourn_trial.cases.sink import load_of, sink_of, watched

FILE = Path(__file__).parent.parent / "examples" / "vld.yaml"
TIMES, ALLOCATION = 2.0, {"extract": 18, "match": 20, "aggregate": 1}
LONGER = 1.25
PASSED_PER_S, PASSED_BATCH_S = 50.0, 5.0
ASYNC = "asyncProgressTrackingEnabled"


def run(asked, seed, *, ends):
    """Return births and latencies of all roots, from the second batch on."""
    topology = read_topology(FILE).scaled(TIMES)
    app = load(str(FILE))
    lasts_s = asked.batch * asked.batches
    batch_s = asked.batch if ends else 10 * lasts_s
    settings = SparkSettings(batch_s=batch_s, broker_secured=False)
    with SparkEngine(app, str(FILE), settings) as engine:
        engine.start(topology, Plan.here(ALLOCATION))
        with (
            sink_of(app, engine.servers) as sink,
            load_of(topology, app, engine.servers, lasts_s=lasts_s, seed=seed) as sending,
        ):
            for _ in watched(engine, lasts_s):
                pass
            sent = sending.wait()
            number = sum(sent.sent.values())
            if not sink.await_roots(number):
                raise SystemExit(f"{number - len(sink.roots())} of {number} roots are lost")
            twice = len(sink.arrived) - number
    began_s = sent.started_s + asked.batch
    times = [(a.birth_s, a.took_s) for a in sink.arrived if a.birth_s >= began_s]
    print(f"round {seed}, ends {ends}: {number} roots, {twice} twice", file=sys.stderr)
    return np.array(times)


def seconds(times):
    """Return the mean latency of each second of births."""
    births, took = times[:, 0], times[:, 1]
    whole = np.floor(births - births.min()).astype(int)
    return [took[whole == at].mean() for at in range(whole.max() + 1) if (whole == at).any()]


def pauses(batches, seed, *, asynchronous):
    """Return the longest times without a record at the sink, one for each end of a batch."""
    app, address = throughput_app.one, "throughput_app:one"
    measured = {"pass-0": Hints(service_s=2e-5)}
    topology = app.topology({"source": PASSED_PER_S}, measured=measured)
    lasts_s = PASSED_BATCH_S * batches
    real_time.OPTIONS = {ASYNC: "true" if asynchronous else "false"}
    settings = SparkSettings(batch_s=PASSED_BATCH_S, broker_secured=False)
    with SparkEngine(app, address, settings) as engine:
        engine.start(topology, Plan.here({"pass-0": 1}))
        sending = load_of(
            topology, app, engine.servers, lasts_s=lasts_s, seed=seed, gaps="constant"
        )
        with sink_of(app, engine.servers) as sink, sending:
            for _ in watched(engine, lasts_s):
                pass
            number = sum(sending.wait().sent.values())
            if not sink.await_roots(number):
                raise SystemExit(f"{number - len(sink.roots())} of {number} roots are lost")
    gaps_s = np.diff([arrived.read_s for arrived in sink.arrived])
    return np.sort(gaps_s)[-(batches - 1) :]


def compare_commits(rounds, batches):
    """Measure both ways to commit, and print."""
    found = {False: [], True: []}
    for seed in range(1, rounds + 1):
        for asynchronous, gaps_s in found.items():
            gaps_s.extend(pauses(batches, seed, asynchronous=asynchronous))
    before, meanwhile = np.median(found[False]), np.median(found[True])
    for asynchronous, name in ((False, "before the next"), (True, "meanwhile")):
        gaps_s = found[asynchronous]
        print(
            f"committed {name:16} pause at the end of a batch: median "
            f"{1e3 * np.median(gaps_s):.0f} ms, worst {1e3 * max(gaps_s):.0f} ms "
            f"of {len(gaps_s)}"
        )
    print(f"ratio of medians {before / meanwhile:.2f}")


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=float, default=15.0)
    parser.add_argument("--batches", type=int, help="5, or 12 with --commits")
    parser.add_argument("--commits", action="store_true", help="compare two ways to commit")
    parser.add_argument("--short", action="store_true", help="one round of three batches")
    asked = parser.parse_args()
    if asked.short:
        asked.rounds, asked.batches = 1, 3
    if asked.commits:
        compare_commits(asked.rounds, asked.batches or 12)
        return
    asked.batches = asked.batches or 5
    topology = read_topology(FILE)
    service_s = sum(topology.visits[o.name] * o.service_s for o in topology.operators)
    found = {True: [], False: []}
    for seed in range(1, asked.rounds + 1):
        for ends in (True, False):
            found[ends].append(run(asked, seed, ends=ends))
    for ends, name in ((True, f"every {asked.batch:g} s"), (False, "none ends")):
        took = np.concatenate([times[:, 1] for times in found[ends]])
        means = [mean for times in found[ends] for mean in seconds(times)]
        above = fmean(mean > LONGER * service_s for mean in means)
        p50, p95, p99 = np.percentile(took, [50, 95, 99])
        print(
            f"{name:13} mean {took.mean():.2f} s, p50 {p50:.2f} s, p95 {p95:.2f} s, "
            f"p99 {p99:.2f} s; "
            f"worst second {max(means):.2f} s; {100 * above:.0f} % of seconds above "
            f"{LONGER * service_s:.2f} s"
        )


if __name__ == "__main__":
    main()

"""Three operators without work, beside the same chain in Quix Streams, on the same broker.

    python benchmarks/spark_peers.py [--rounds 2] [--lasts 60] [--only PART…] [--quick]

The peer is a library for Kafka consumers in Python: three processes, one topic after the other,
at least once, JSON, with the time that its producers wait for more records chosen by the rate.
Ours has one processor for each operator. Both commit every 15 s (--batch), and run in turn. In
parts:

- latency: percentiles at 20 and at 1,000 records per second, from the time of a record in the
  source until it is read at the sink; the longest silence there in every 18 s, which have the
  end of a batch in them; CPU per record of all processes of a chain, without broker and load
- throughput: 100,000 records that wait in the source, from the first to the last at the sink.
  The last ones may wait for the end of a batch, so it is printed up to 98 % of them as well
- depth: ours alone, one operator, three and ten in a row: what one more costs. The exit status
  is 1 if that is a millisecond of latency (p50) or more

Records come at constant gaps, so that a silence is not one of the source. The peer is installed
into a virtual environment of its own, from the group `peers` in pyproject.toml. The default run
takes half an hour.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from chain_runs import OURS, PEER, Bench
from quix_chain import environment
from sojourn.spark.driver.kafka.broker import Broker
from sojourn_trial.cases.sink import percentiles_ms

OPERATORS, DEPTHS = 3, (1, 3, 10)
# What one more operator without work may add to the median latency.
MOST_PER_OPERATOR_MS = 1.0
RATES_PER_S = (20.0, 1000.0)
DEPTH_PER_S = 20.0
# Where more or fewer come than are sent, latency depends on how long a run takes.
STEADY = 0.03
# What both are set up for where records wait.
DRAINED_PER_S = 5000.0


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All rounds of a chain at one rate, together."""

    name: str
    operators: int
    per_s: float
    came_per_s: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    cpu_ms: float
    silence_ms: float
    longest_silence_ms: float
    silences: int
    sent: int
    lost: int
    twice: int


def summary(runs):
    """Return the summary of several runs of the same."""
    p50_ms, p95_ms, p99_ms = percentiles_ms([wait_s for run in runs for wait_s in run.waits_s])
    silences = [silence_ms for run in runs for silence_ms in run.silences_ms]
    return Summary(
        name=runs[0].name,
        operators=runs[0].operators,
        per_s=runs[0].per_s,
        came_per_s=fmean(run.came_per_s for run in runs),
        p50_ms=p50_ms,
        p95_ms=p95_ms,
        p99_ms=p99_ms,
        cpu_ms=fmean(run.cpu_ms for run in runs),
        silence_ms=float(np.median(silences)),
        longest_silence_ms=max(silences),
        silences=len(silences),
        sent=sum(run.sent for run in runs),
        lost=sum(run.lost for run in runs),
        twice=sum(run.twice for run in runs),
    )


def told(run):
    """Say how a run went, and return it."""
    shown = {name: value for name, value in asdict(run).items() if name != "waits_s"}
    print(shown, file=sys.stderr, flush=True)
    return run


def row(name, values, digits=1):
    """Print one line of a table."""
    print(f"  {name:22}" + "".join(f"{value:>12.{digits}f}" for value in values), flush=True)


def shown(found):
    """Print a summary as a line of a table."""
    times = (found.p50_ms, found.p95_ms, found.p99_ms, found.silence_ms)
    row(found.name, (*times, found.longest_silence_ms, found.cpu_ms))
    if abs(found.came_per_s / found.per_s - 1) > STEADY:
        print(f"    not steady: {found.came_per_s:.1f} records per s came")
    if found.lost or found.twice:
        print(f"    of {found.sent} records {found.lost} lost, {found.twice} twice")


def head(text):
    """Print the head of a table of latencies, in milliseconds."""
    names = ("p50", "p95", "p99", "silence", "longest", "CPU")
    print(f"{text:24}" + "".join(f"{name:>12}" for name in names), flush=True)


def latency(bench, rounds):
    """Measure and print latencies at every rate."""
    results = []
    for per_s in RATES_PER_S:
        runs = {OURS: [], PEER: []}
        for _ in range(rounds):
            for name, some in runs.items():
                some.append(told(bench.steady(name, OPERATORS, per_s)))
        ours, peer = (summary(some) for some in runs.values())
        head(f"ms at {per_s:g} per s")
        shown(ours)
        shown(peer)
        names = ("p50_ms", "p95_ms", "p99_ms", "silence_ms", "longest_silence_ms", "cpu_ms")
        row("ratio", (getattr(ours, name) / getattr(peer, name) for name in names), digits=2)
        results += [asdict(ours), asdict(peer)]
    return results


def throughput(bench, rounds):
    """Measure and print how fast what waits is worked off."""
    runs = {OURS: [], PEER: []}
    for _ in range(rounds):
        for name, some in runs.items():
            some.append(told(bench.drained(name, OPERATORS, DRAINED_PER_S)))
    print(f"{'records per s':24}{'to the last':>12}{'to 98 %':>12}")
    means = {
        name: (fmean(run.per_s for run in some), fmean(run.most_per_s for run in some))
        for name, some in runs.items()
    }
    for name, values in means.items():
        row(name, values, digits=0)
    row("ratio", (a / b for a, b in zip(*means.values(), strict=True)), digits=3)
    return [asdict(run) for some in runs.values() for run in some]


def depth(bench, rounds):
    """Measure and print what one more operator costs; leave with status 1 if it is too much."""
    runs = {operators: [] for operators in DEPTHS}
    for _ in range(rounds):
        for operators, some in runs.items():
            some.append(told(bench.steady(OURS, operators, DEPTH_PER_S)))
    found = [summary(some) for some in runs.values()]
    head("ms, operators in a row")
    for each in found:
        shown(replace(each, name=f"{each.operators}"))
    few, many = found[0], found[-1]
    more = many.operators - few.operators
    cost_ms = (many.p50_ms - few.p50_ms) / more
    print(
        f"  one more operator: {cost_ms:.2f} ms of latency (p50), "
        f"{(many.cpu_ms - few.cpu_ms) / more:.2f} ms of CPU per record"
    )
    if cost_ms >= MOST_PER_OPERATOR_MS:
        raise SystemExit(f"one more operator takes {MOST_PER_OPERATOR_MS:g} ms or more")
    return [asdict(each) for each in found]


PARTS = {"latency": latency, "throughput": throughput, "depth": depth}


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--lasts", type=float, default=60.0, help="seconds measured of a run")
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds before these")
    parser.add_argument("--warm-per-s", type=float, help="rate in most of the warm-up")
    parser.add_argument("--batch", type=float, default=15.0, help="seconds between commits")
    parser.add_argument("--records", type=int, default=100_000, help="that wait at the start")
    parser.add_argument("--linger-ms", type=float, help="of the peer's producers")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="10 s each: does it work?")
    asked = parser.parse_args()
    if asked.quick:
        asked.rounds, asked.lasts, asked.warm_up, asked.batch = 1, 10.0, 5.0, 5.0
        asked.records = 10_000
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = environment(folder / "peer") if {*asked.only} - {"depth"} else None
        with Broker(secured=False) as broker:
            bench = Bench(asked, broker.bootstrap_servers, folder, python)
            for part in asked.only:
                results[part] = PARTS[part](bench, asked.rounds)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

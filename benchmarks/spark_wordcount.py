"""Words that are counted by key: what a state costs, beside a peer and Spark's own aggregation.

    python benchmarks/spark_wordcount.py [--rounds 1] [--only NAME…] [--no-latency]
                                         [--json FILE] [--quick]

Four that read the same words from one topic and write a count for each to another:

- stateless: a function of ours that reads by key and keeps nothing
- state: the same, with a state for each word
- quix: Quix Streams, with states in RocksDB and a changelog topic, at least once
- spark: `groupBy("word").count()` of Spark in real-time mode, with states in RocksDB

In turn each works off words that wait (--records), for records per second and CPU time per
record; then words come at a constant rate (--per-s), for latency: from the time of a record in
the source until a count that it is in is read at the sink. Spark's own tells only the last of
several counts of a word. All commit every --batch seconds. CPU is that of all processes, the
driver included, without broker and load. From 10 to 98 % of the records are measured, so that
what starts is not. In the end counts are compared with those of the input.
"""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

from quix_chain import environment
from sojourn.spark.driver.kafka.broker import Broker
from wordcount_runs import NAMES, Bench


def show(runs):
    """Print the medians of all rounds, and how one compares with another."""
    fields = [
        name
        for name in asdict(next(iter(runs.values()))[0])
        if name not in ("name", "parts_us")
    ]
    medians = {
        name: {field: median(getattr(run, field) for run in some) for field in fields}
        for name, some in runs.items()
    }
    print(f"{'':28}" + "".join(f"{field:>15}" for field in fields))
    for name, values in medians.items():
        print(f"{name:28}" + "".join(f"{value:15.1f}" for value in values.values()))
    for name, some in runs.items():
        kinds = {kind: median(run.parts_us[kind] for run in some) for kind in some[0].parts_us}
        if kinds:
            print(f"{name}, µs of CPU by process: {kinds}")
    for one, other in (("state", "stateless"), ("state", "quix"), ("state", "spark")):
        if {one, other} <= medians.keys():
            ratios = [
                median(
                    getattr(a, field) / getattr(b, field)
                    for a, b in zip(runs[one], runs[other], strict=True)
                )
                for field in fields
            ]
            print(f"{f'{one} / {other}':28}" + "".join(f"{ratio:15.2f}" for ratio in ratios))


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--records", type=int, default=100_000, help="that wait at the start")
    parser.add_argument("--per-s", type=float, default=200.0, help="for latency")
    parser.add_argument("--lasts", type=float, default=30.0, help="seconds measured of these")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds before these")
    parser.add_argument("--batch", type=float, default=15.0, help="seconds between commits")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=[*NAMES], metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--no-latency", action="store_true", help="only what waits")
    parser.add_argument("--quick", action="store_true", help="few words: does it work?")
    asked = parser.parse_args()
    if asked.quick:
        asked.records, asked.lasts, asked.warm_up, asked.batch = 5000, 5.0, 5.0, 5.0
    runs = {name: [] for name in NAMES if name in asked.only}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = environment(folder / "peer") if "quix" in runs else None
        with Broker(secured=False) as broker:
            bench = Bench(asked, broker.bootstrap_servers, folder, python)
            for _ in range(asked.rounds):
                for name, some in runs.items():
                    some.append(bench.run(name))
    show(runs)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(r) for s in runs.values() for r in s]) + "\n")


if __name__ == "__main__":
    main()

"""How long plans take: `python benchmarks/planning.py [--json]`.

Ours stands beside a straightforward port of DRS Algorithm 1, which works out E[T_i] anew
for every operator at every step, in the same run: on a noisy machine only the ratio counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

import sojourn as sj

# DRS-15 and DRS-17, Table II: processors and milliseconds of scheduling, three operators.
PAPER_MS = {12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250}
EXAMPLES = Path(__file__).parent.parent / "examples"


def erlang_sojourn_s(arrivals_per_s, service_s, processors):
    """Return E[T_i] of M/M/k, worked out from nothing."""
    erlangs, blocked = arrivals_per_s * service_s, 1.0
    for k in range(1, processors + 1):
        blocked = erlangs * blocked / (k + erlangs * blocked)
    spare = processors - erlangs
    return service_s * (1 + processors * blocked / ((spare + erlangs * blocked) * spare))


def algorithm_1(topology, processors):
    """Return DRS Algorithm 1 as it is printed, line by line."""
    loads = topology.loads
    k = {name: int(load.erlangs) + 1 for name, load in loads.items()}
    while sum(k.values()) < processors:
        gains = {
            name: load.arrivals_per_s
            * (
                erlang_sojourn_s(load.arrivals_per_s, load.service_s, k[name])
                - erlang_sojourn_s(load.arrivals_per_s, load.service_s, k[name] + 1)
            )
            for name, load in loads.items()
        }
        k[max(gains, key=gains.get)] += 1
    return k


def fastest_s(run, times):
    """Return the fastest of some runs: what the machine can do when nothing else disturbs."""
    took = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        took.append(time.perf_counter() - started)
    return min(took)


def chain(operators, *, per_s=10.0, erlangs=1.0):
    """Return a chain of operators with differing service times."""
    return sj.Topology(
        name="chain",
        arrivals=(sj.Arrival(name="in", per_s=per_s, into="o0"),),
        operators=tuple(
            sj.Operator(
                name=f"o{i}",
                service_s=erlangs / per_s * (0.5 + (i * 0.618) % 1),
                emits={f"o{i + 1}": 1} if i + 1 < operators else {},
            )
            for i in range(operators)
        ),
    )


def table_2():
    """Three operators at DRS's sizes. VLD at half its rate, so that 12 suffice."""
    topology = sj.read_topology(EXAMPLES / "vld.yaml").scaled(0.5)
    rows = []
    for processors, paper_ms in PAPER_MS.items():
        plan = sj.assign(topology, processors, model="mmk")
        ported = sj.predict(topology, algorithm_1(topology, processors), model="mmk")
        # the port's gains drown in rounding once waits are tiny, so allocations may differ
        assert plan.mean_s <= ported.mean_s * (1 + 1e-12), f"beaten at {processors}"

        def ours(processors=processors):
            sj.assign(topology, processors, model="mmk")

        def port(processors=processors):
            algorithm_1(topology, processors)

        # interleaved, so that both meet the same disturbances
        pairs = [(fastest_s(ours, 20), fastest_s(port, 2)) for _ in range(15)]
        ours_s, port_s = min(p[0] for p in pairs), min(p[1] for p in pairs)
        rows.append(
            {
                "processors": processors,
                "ours_ms": ours_s * 1e3,
                "port_ms": port_s * 1e3,
                "ratio": port_s / ours_s,
                "paper_ms": paper_ms,
            }
        )
    return rows


def large():
    """Plan a thousand operators and a million processors."""
    rows = []
    for label, erlangs in (("busy 80 %", 800.0), ("busy 50 %", 500.0), ("all but idle", 1.0)):
        topology = chain(1000, erlangs=erlangs)
        for model in ("mmk", "gigk", "round_robin"):

            def run(topology=topology, model=model):
                sj.assign(topology, 1_000_000, model=model)

            took_s = fastest_s(run, 3)
            tracemalloc.start()
            run()
            peak_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            rows.append(
                {"load": label, "model": model, "s": took_s, "peak_mb": peak_bytes / 1e6}
            )
    return rows


def growth():
    """How time grows with processors and with operators."""
    rows = []
    for operators, processors in (
        (10, 1_000), (10, 10_000), (10, 100_000),
        (100, 10_000), (100, 100_000), (1_000, 10_000), (1_000, 100_000),
    ):  # fmt: skip
        topology = chain(operators, erlangs=processors / operators / 2)
        took_s = fastest_s(lambda t=topology, p=processors: sj.assign(t, p), 3)
        rows.append({"operators": operators, "processors": processors, "ms": took_s * 1e3})
    return rows


def commands():
    """Whole commands from a cold start."""
    rows = []
    for arguments in (
        ("plan", "vld.yaml", "--processors", "22"),
        ("plan", "vld.yaml", "--target-p95", "3s"),
        ("plan", "fpd.yaml", "--target-p99", "100ms"),
        ("plan", "vld-bursty.yaml", "--processors", "7"),
    ):
        verb, file, *rest = arguments
        command = [sys.executable, "-m", "sojourn", verb, str(EXAMPLES / file), *rest]
        took = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            took.append(time.perf_counter() - started)
        row = {"command": "sojourn " + " ".join(arguments)}
        rows.append(row | {"fastest_s": min(took), "median_s": statistics.median(took)})
    return rows


def show(title, rows, console):
    """Print rows of a table."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    console = Console(stderr=as_json)
    results = {}
    for title, measure in (
        ("DRS Table II: three operators, ours and a port of Algorithm 1", table_2),
        ("1,000 operators, 1,000,000 processors", large),
        ("growth, half busy", growth),
        ("from a cold start", commands),
    ):
        results[measure.__name__] = measure()
        if not as_json:
            show(title, results[measure.__name__], console)
    if as_json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()

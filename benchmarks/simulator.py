"""How fast the simulator is: `python benchmarks/simulator.py [--json]`.

Ours stands beside Ciw, a simulator of queueing networks in Python, on the same network and
in the same run: on a noisy machine only the ratio counts.
"""

import argparse
import json
import subprocess
import sys
import time

import ciw
from rich import box
from rich.console import Console
from rich.table import Table

import sojourn as sj
from sojourn.simulate.run import simulate

PROCESSORS, BUSY = 10, 0.8
CIW_ROOTS, OUR_ROOTS, ROUNDS = 20_000, 2_000_000, 3


def chain(operators):
    """Return a chain of operators, each reached by a record in a second."""
    return sj.Topology(
        name="chain",
        arrivals=(sj.Arrival(name="roots", per_s=1.0, into="o0"),),
        operators=tuple(
            sj.Operator(
                name=f"o{i}",
                service_s=BUSY * PROCESSORS,
                emits={f"o{i + 1}": 1} if i + 1 < operators else {},
            )
            for i in range(operators)
        ),
    )


def ours(operators, roots):
    """Return visits per second, and the mean, of our simulator."""
    topology = chain(operators)
    done = simulate(topology, dict.fromkeys(topology.operator, PROCESSORS), roots=roots)
    return done.visits / done.wall_s, done.mean_s.value


def theirs(operators, roots):
    """Return visits per second, and the mean, of Ciw."""
    routing = [[float(j == i + 1) for j in range(operators)] for i in range(operators)]
    silent = [None] * (operators - 1)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=1.0), *silent],
        service_distributions=[ciw.dists.Exponential(rate=1 / (BUSY * PROCESSORS))] * operators,
        number_of_servers=[PROCESSORS] * operators,
        routing=routing,
    )
    ciw.seed(1)
    simulation = ciw.Simulation(network)
    started = time.perf_counter()
    simulation.simulate_until_max_customers(roots, method="Complete")
    took_s = time.perf_counter() - started
    visits = simulation.get_all_records()
    stays_s = [visit.exit_date - visit.arrival_date for visit in visits[len(visits) // 10 :]]
    return len(visits) / took_s, operators * sum(stays_s) / len(stays_s)


def against_ciw():
    """Measure both by turns, so that both meet the same disturbances; the fastest counts."""
    rows = []
    for operators in (1, 3):
        ours(operators, 1000)  # compiled by now
        rounds = [
            (ours(operators, OUR_ROOTS), theirs(operators, CIW_ROOTS)) for _ in range(ROUNDS)
        ]
        our_visits, ciw_visits = (max(r[i][0] for r in rounds) for i in (0, 1))
        rows.append(
            {
                "network": f"{operators} x M/M/{PROCESSORS}",
                "ours_visits_per_s": our_visits,
                "ciw_visits_per_s": ciw_visits,
                "ratio": our_visits / ciw_visits,
                "our_mean_s": rounds[0][0][1],
                "ciw_mean_s": rounds[0][1][1],
            }
        )
    return rows


def commands():
    """Time a million roots through three operators, from the start of a process to its end."""
    operators = {
        o.name: {"service_s": o.service_s, "emits": dict(o.emits)} for o in chain(3).operators
    }
    text = json.dumps(
        {
            "format": 1,
            "name": "chain",
            "arrivals": {"roots": {"per_s": 1, "into": "o0"}},
            "operators": operators,
        }
    )
    allocation = ",".join(f"{name}={PROCESSORS}" for name in operators)
    command = [sys.executable, "-m", "sojourn", "simulate", "-", "--allocation", allocation]
    took = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        subprocess.run(
            [*command, "--records", "1000000", "--json"],
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        took.append(time.perf_counter() - started)
    # the first may have had to compile
    return [
        {
            "command": "sojourn simulate, 1,000,000 roots, 3,000,000 visits",
            "first_s": took[0],
            "second_s": took[1],
            "fastest_s": min(took[1:]),
        }
    ]


def show(title, rows, console):
    """Print rows of a table."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{v:,.4g}" if isinstance(v, float) else v for v in row.values()))
    console.print(table)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    results = {}
    for title, measure in (
        (f"visits per second on one core, {BUSY:.0%} busy", against_ciw),
        ("from a fresh process, compiled code cached", commands),
    ):
        results[measure.__name__] = measure()
        if not as_json:
            show(title, results[measure.__name__], Console(width=120))
    if as_json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()

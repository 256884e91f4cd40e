"""How long a policy takes for a decision: `python benchmarks/turns.py [--seed 1] [--json]`.

It decides in every turn of a loop on the simulator, for which a load that doubles and halves
is made. The target is a percentile of a chain, of a tree whose branches end on their own, and
of a topology with two loops.
"""

import argparse
import gc
import json
from time import perf_counter

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.decide.objective import Objective
from sojourn.simulate.rehearsal import Stage, rehearse
from sojourn.simulate.workload import Rates

TURNS = 120


def operator(i, emits, *, per_s=10.0):
    """Return operator *i*; each keeps 1 to 3 processors busy at one visit for each root."""
    return sj.Operator(
        name=f"o{i}",
        service_s=(1 + (i * 0.618) % 1 * 2) / per_s,
        service_scv=(i * 0.3) % 2,
        emits={f"o{to}": mean for to, mean in emits.items()},
    )


def topology(name, emits):
    return sj.Topology(
        name=name,
        arrivals=(sj.Arrival(name="in", per_s=10.0, into="o0"),),
        operators=tuple(operator(i, emits.get(i, {})) for i in range(max(emits) + 2)),
    )


def cases():
    """Yield a topology, and a multiple of its service times that is the target."""
    yield topology("chain of ten", {i: {i + 1: 1} for i in range(9)})
    tree = {
        0: {1: 1, 2: 1},
        1: {3: 1, 4: 1},
        2: {5: 1},
        5: {6: 1, 7: 1},
        6: {8: 0.5},
        8: {9: 1},
    }
    yield topology("tree of ten", {i: tree.get(i, {}) for i in range(9)})
    yield topology("two loops", {0: {1: 1}, 1: {2: 1, 0: 0.2}, 2: {3: 1}, 3: {4: 1, 2: 0.3}})


def decisions_s(application, seed):
    """Return the time of each decision, in seconds."""
    served_s = sum(application.visits[o.name] * o.service_s for o in application.operators)
    every_s = 10.0
    stage = Stage(
        topology=application,
        rates=Rates.steps(
            (0, 10),
            (TURNS * every_s / 3, 20),
            (TURNS * every_s * 2 / 3, 10),
            (TURNS * every_s, 10),
        ),
        objective=Objective(target=sj.Target("p95", 4 * served_s)),
        every_s=every_s,
    )
    drs, took = policy("drs", target=stage.target), []

    def timed(knowledge):
        gc.disable()  # a full collection of the simulator's objects is no part of a turn
        begun = perf_counter()
        wish = drs(knowledge)
        took.append(perf_counter() - begun)
        gc.enable()
        return wish

    rehearse(stage, timed, seed=seed)
    return np.array(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = {}
    for application in cases():
        took = 1000 * decisions_s(application, asked.seed)
        rows[application.name] = {
            "turns": took.size,
            "median_ms": float(np.median(took)),
            "p99_ms": float(np.quantile(took, 0.99)),
            "worst_ms": float(took.max()),
        }
    if asked.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("topology", "turns", "median", "p99", "longest", box=box.SIMPLE)
    for name, row in rows.items():
        times = [f"{row[each]:.1f} ms" for each in ("median_ms", "p99_ms", "worst_ms")]
        table.add_row(name, str(row["turns"]), *times)
    Console().print(table)


if __name__ == "__main__":
    main()

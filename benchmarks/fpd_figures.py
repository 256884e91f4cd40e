"""Figures 6, 7 and 9 of DRS-15, simulated with the parameters that FPD was measured with.

The load is raised until 22 processors are needed, and time is stretched, so that service takes
milliseconds as in the paper: ratios of times, visits and variability are as measured.
"""

import argparse
import json
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path

from sojourn.decide.assign import assign
from sojourn.decide.neighbours import neighbours
from sojourn.topology.file import read_topology
from sojourn_papers.experiments.application import Application
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.configurations import Six, correlated, in_order, least
from sojourn_papers.experiments.on_simulator import simulated
from sojourn_papers.experiments.papers.drs15_fig9 import EXPERIMENT as FIG9
from sojourn_papers.experiments.papers.drs15_fig9 import SCHEDULE
from sojourn_papers.experiments.rebalancing import StartAllocations

MEASURED = Path(__file__).parents[1] / "examples/applications/fpd.yaml"
PROCESSORS, STRETCHED = 22, 100.0


def as_measured(path, busy):
    """Return the measured topology with a load that keeps a part of the processors *busy*."""
    found = read_topology(path)
    operators = tuple(
        replace(o, service_s=STRETCHED * o.service_s, transfer_s=0.0, cpu_s=None)
        for o in found.operators
    )
    slow = replace(found, operators=operators, cores=None)
    erlangs = sum(load.erlangs for load in slow.loads.values())
    return slow.scaled(busy * PROCESSORS / erlangs)


def six_of(application, lasts_s, model):
    """Return what DRS recommends, and the five best allocations one move from it."""
    best = assign(application.topology, PROCESSORS, model=model).allocation
    near = [
        each
        for each in neighbours(application.topology, best, model=model, nearest=PROCESSORS)
        if isfinite(each.mean_s)
    ]
    return Six(
        application=application,
        recommended=tuple(best.values()),
        others=tuple(tuple(each.allocation.values()) for each in near[:5]),
        lasts_s=lasts_s,
    )


def figures(application, *, lasts_s, model, seed):
    """Return what each allocation did, and the verdicts of the three figures."""
    bench = Bench(engine=simulated, seed=seed)
    six = six_of(application, lasts_s, model)
    best, name = ":".join(map(str, six.recommended)), application.name
    measured = six.measured(bench)
    # verdicts compare with the estimate that DRS has
    estimated = [replace(f, mmk_s=f.mmk_s if model == "mmk" else f.gigk_s) for f in measured]
    starts = StartAllocations(
        application=application, best=six.recommended, others=six.others[-2:]
    )
    rebalanced = replace(FIG9, starts=(starts,), schedule=SCHEDULE, model=model).run(bench)
    return measured, {
        "Fig. 6": [
            least("mean", name, best, measured),
            least("standard deviation", name, best, measured),
        ],
        "Fig. 7": [in_order(name, estimated), correlated(name, estimated)],
        "Fig. 9": list(rebalanced.verdicts),
    }


def main():
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measured", type=Path, default=MEASURED, help="a topology")
    parser.add_argument("--busy", type=float, default=0.72, help="of 22 processors")
    parser.add_argument("--lasts", type=float, default=6000.0, help="seconds, of each run")
    parser.add_argument("--model", choices=["mmk", "gigk"], default="mmk")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    application = Application(topology=as_measured(asked.measured, asked.busy))
    measured, verdicts = figures(
        application, lasts_s=asked.lasts, model=asked.model, seed=asked.seed
    )
    if asked.json:
        told = {figure: [asdict(each) for each in some] for figure, some in verdicts.items()}
        runs = [asdict(each) for each in measured]
        print(json.dumps({"allocations": runs, "verdicts": told}, indent=2))
        return
    print(f"{application.topology.arrivals_per_s:.0f} tweets/s, {PROCESSORS} processors")
    print("allocation   measured s        deviation s       mmk s    gigk s")
    for each in measured:
        print(
            f"{each.name:<12} {each.mean!s:<17} {each.std!s:<17} {each.mmk_s:<8.4f} "
            f"{each.gigk_s:.4f}"
        )
    for figure, some in verdicts.items():
        for verdict in some:
            holds = "holds" if verdict.holds else "does not hold"
            print(f"{figure}: {verdict.point}: {holds}; {verdict.numbers}")


if __name__ == "__main__":
    main()

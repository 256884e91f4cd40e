"""Rivals of drs at the same objective: each with the setting and the looks that suit it best.

    python benchmarks/rivals.py [--hours 6] [--kept 99] [--jobs 2] [LOAD…]

Loads and pipeline are those of objective.py. Of each rival the setting is searched, with
hindsight, that keeps the objective with the fewest processors, for looks of 2, 5 and 10 s.
`schedule` knows the rates: it plans for the highest of the next seconds with a margin, which is
searched too. What no setting keeps is left empty.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

import sojourn as sj
from objective import rates, scene
from sojourn.act.policy import policy
from sojourn.act.policy.ds2 import Ds2
from sojourn.act.policy.threshold import Threshold
from sojourn.simulate.rehearsal import Stage, rehearse
from sojourn.simulate.schedule import Schedule

LOOKS_S = (2.0, 5.0, 10.0)
# The range of each setting, from few processors to many, and how often it is halved.
RANGES = {"threshold": (1.0, 0.3), "ds2": (0.0, 1.5), "schedule": (-0.2, 0.6)}
HALVED = 5


@dataclass(frozen=True, kw_only=True)
class Search:
    """One rival with looks so far apart, on one load."""

    load: str
    hours: float
    kept: float
    policy: str
    every_s: float
    seed: int


def stage(search):
    topology, target = scene("vld")
    objective = sj.Objective(target=target, kept=search.kept)
    return Stage(
        topology=topology,
        rates=rates(search.load, search.hours),
        objective=objective,
        every_s=search.every_s or objective.every_s,
        sample_every=1,
    )


def made(name, there, setting):
    if name == "threshold":
        return Threshold(utilisation=setting, down_s=60.0)
    if name == "ds2":
        return Ds2(scaling_factor=setting)
    return Schedule(stage=there, margin=setting)


def score(search):
    """Return kept, processors and changes per hour of drs, or of the best setting found."""
    there = stage(search)

    def run(chosen):
        done = rehearse(there, chosen, seed=search.seed).score
        hours = search.hours
        return done.kept, done.processor_hours / hours, done.changes / hours

    if search.policy == "drs":
        target = there.objective.target
        return "", *run(policy("drs", target=target, every_s=there.every_s, pauses=False))
    few, many = RANGES[search.policy]
    best = None
    for _ in range(HALVED):
        middle = (few + many) / 2
        found = run(made(search.policy, there, middle))
        if found[0] >= search.kept:
            many, best = middle, (f"{middle:.3g}", *found)
        else:
            few = middle
    return best


def main():
    """Run everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    loads = [
        "worldcup98",
        "nyc-taxi",
        "twitter-volume",
        "azure-llm",
        "steady",
        "bursts",
        "steps",
    ]
    parser.add_argument("loads", nargs="*", default=loads, metavar="LOAD")
    parser.add_argument("--hours", type=float, default=6.0)
    parser.add_argument("--kept", type=float, default=99.0, help="in percent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    every = [("drs", 0.0), ("schedule", 0.0)]
    every += [(name, every_s) for name in ("threshold", "ds2") for every_s in LOOKS_S]
    searches = [
        Search(
            load=load,
            hours=asked.hours,
            kept=asked.kept / 100,
            policy=name,
            every_s=every_s,
            seed=asked.seed,
        )
        for load in asked.loads
        for name, every_s in every
    ]
    heads = ("load", "policy", "look", "setting", "kept", "processors", "of drs", "changes/h")
    table, drs = Table(*heads, box=box.SIMPLE), 0.0
    with ProcessPoolExecutor(asked.jobs) as pool:
        for search, found in zip(searches, pool.map(score, searches), strict=True):
            look = f"{search.every_s:g} s" if search.every_s else "3 s"
            cells = [search.load, search.policy, look]
            if found is not None:
                setting, kept, processors, changes = found
                drs = processors if search.policy == "drs" else drs
                part = f"{processors / drs - 1:+.1%}"
                cells += [setting, f"{kept:.2%}", f"{processors:.2f}", part, f"{changes:.0f}"]
            table.add_row(*cells)
            print(*cells, flush=True)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

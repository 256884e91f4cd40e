"""Objectives on real and made loads: the part of the slices kept, and what it takes.

    python benchmarks/objective.py [--hours 24] [--kept 99] [--every 3] [--jobs 2] [LOAD…]

Logos are found in video (examples/vld.yaml) at 13 roots per second on average, with p95 below
3.5 s. A load that is shorter than the time is repeated.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.simulate.rehearsal import Stage, rehearse
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates

EXAMPLES = Path(__file__).parent.parent / "examples"
TARGET = sj.Target("p95", 3.5)
MEAN_PER_S = 13.0
# How much faster than it was each trace is played.
TRACES = {"worldcup98": 12.0, "nyc-taxi": 56.0, "twitter-volume": 12.0, "azure-llm": 1.0}
MADE = ("steady", "bursts", "steps")


@dataclass(frozen=True, kw_only=True)
class Trial:
    load: str
    kept: float
    hours: float
    every_s: float
    seed: int


def made(load):
    """Return one period of a made load, as points of time and rate."""
    if load == "bursts":  # to triple, for a minute in every fifteen
        return [(0, 1), (840, 1), (841, 3), (900, 3), (901, 1)]
    if load == "steps":
        levels = (1.0, 1.6, 0.7, 2.2, 1.2, 0.5)
        return [(600 * i + after, each) for i, each in enumerate(levels) for after in (0, 599)]
    return [(0, 1), (600, 1)]


@cache
def rates(load, hours):
    """Return a load at the mean rate, repeated for this many hours."""
    if load in TRACES:
        path = EXAMPLES / "traces" / f"{load}.csv"
        points = read_rates(path, faster=TRACES[load]).points
    else:
        points = made(load)
    times = np.array([at_s for at_s, _ in points], dtype=float)
    values = np.array([per_s for _, per_s in points], dtype=float)
    values *= MEAN_PER_S * (times[-1] - times[0]) / np.trapezoid(values, times)
    period_s, until_s = times[-1] + 1.0, 3600 * hours
    repeats = int(np.ceil(until_s / period_s))
    every = [
        (float(at_s + i * period_s), float(per_s))
        for i in range(repeats)
        for at_s, per_s in zip(times, values, strict=True)
    ]
    within = [point for point in every if point[0] < until_s]
    return Rates((*within, (until_s, within[-1][1])))


def row(trial):
    objective = sj.Objective(target=TARGET, kept=trial.kept)
    stage = Stage(
        topology=sj.read_topology(EXAMPLES / "vld.yaml"),
        rates=rates(trial.load, trial.hours),
        objective=objective,
        every_s=trial.every_s or objective.every_s,
    )
    drs = policy("drs", target=TARGET, every_s=stage.every_s, pauses=False)
    began_s = perf_counter()
    done = rehearse(stage, drs, seed=trial.seed)
    took_s, score = perf_counter() - began_s, done.score
    return (
        trial.load,
        f"{trial.kept:.4g}",
        str(score.slices),
        f"{score.kept:.2%}",
        f"{score.processor_hours / trial.hours:.2f}",
        f"{score.changes / trial.hours:.1f}",
        f"{score.worst_s:.2f} s",
        "" if done.budget is None else f"{done.budget.level:+.2f}",
        f"{1000 * took_s / len(done.episodes):.1f} ms",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", default=(*TRACES, *MADE), metavar="LOAD")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--kept", type=float, nargs="+", default=[99.0], help="in percent")
    parser.add_argument("--every", type=float, default=0.0, help="seconds; 0: by the objective")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    trials = [
        Trial(
            load=load, kept=kept / 100, hours=asked.hours, every_s=asked.every, seed=asked.seed
        )
        for load in asked.loads
        for kept in asked.kept
    ]
    heads = (
        "load",
        "asked",
        "slices",
        "kept",
        "processors",
        "changes/h",
        "worst",
        "level",
        "turn",
    )
    table = Table(*heads, box=box.SIMPLE)
    with ProcessPoolExecutor(asked.jobs) as pool:
        for told in pool.map(row, trials):
            table.add_row(*told)
            print(*told, flush=True)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

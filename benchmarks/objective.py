"""Objectives on real and made loads: the part of the slices kept, and what it takes.

    python benchmarks/objective.py [--hours 24] [--kept 99] [--every 3] [--jobs 2]
        [--on vld|loop|tree] [--lost 10] [--pause 5] [--start-time 10]
        [LOAD…]

Logos are found in video (examples/vld.yaml) at 13 roots per second on average, with p95 below
3.5 s; or there is a loop with fan-out, or a tree of ten operators, with p95 below five times
the time of service. A load that is shorter than the time is repeated. `worldcup98:reversed`
is that load backwards, `worldcup98:x4` four times and `worldcup98:x0.25` a quarter of it. With
`--lost 10` a tenth of the looks get no answer; with `--pause 5` a change pauses operators for
5 s; with `--start-time 10` processors take 10 s until they can take records.
"""

import argparse
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

from rich import box
from rich.console import Console
from rich.table import Table

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.errors import EngineError
from sojourn.simulate import rehearsal
from sojourn.simulate.rehearsal import Stage
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates

EXAMPLES = Path(__file__).parent.parent / "examples"
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
    on: str
    lost: float
    pause_s: float
    starts_s: float


class Forgetful(Simulator):
    """A simulator that does not answer some of the looks."""

    lost = 0.0

    def start(self, topology, plan):
        self._chance = random.Random(1)
        super().start(topology, plan)

    def observe(self, until_s):
        pull = super().observe(until_s)
        if self._chance.random() < self.lost:
            raise EngineError("the metrics did not come")
        return pull


def scene(name):
    """Return a topology and the target for it."""
    if name == "vld":
        return sj.read_topology(EXAMPLES / "vld.yaml"), sj.Target("p95", 3.5)
    if name == "loop":
        emits = {0: {1: 2}, 1: {2: 1, 0: 0.1}, 2: {3: 1.5}, 3: {2: 0.2}}
    else:
        emits = {0: {1: 1, 2: 1}, 1: {3: 1, 4: 1}, 2: {5: 1}, 5: {6: 1, 7: 1}}
        emits |= {6: {8: 0.5}, 8: {9: 1}}
    operators = tuple(
        sj.Operator(
            name=f"o{i}",
            service_s=(1 + (i * 0.618) % 1 * 2) / MEAN_PER_S,
            service_scv=(i * 0.3) % 2,
            emits={f"o{to}": mean for to, mean in emits.get(i, {}).items()},
        )
        for i in range(4 if name == "loop" else 10)
    )
    arrivals = (sj.Arrival(name="in", per_s=MEAN_PER_S, into="o0"),)
    topology = sj.Topology(name=name, arrivals=arrivals, operators=operators)
    served_s = sum(topology.visits[o.name] * o.service_s for o in operators)
    return topology, sj.Target("p95", 5 * served_s)


def made(load):
    """Return one period of a made load, as points of time and rate."""
    if load == "bursts":  # to triple, for a minute in every fifteen
        return [(0, 1), (840, 1), (841, 3), (900, 3), (901, 1)]
    if load == "steps":
        levels = (1.0, 1.6, 0.7, 2.2, 1.2, 0.5)
        return [(600 * i + after, each) for i, each in enumerate(levels) for after in (0, 599)]
    return [(0, 1), (600, 1)]


@cache
def rates(told, hours):
    """Return a load at the mean rate, or a multiple, repeated for this many hours."""
    load, *changes = told.split(":")
    if load in TRACES:
        path = EXAMPLES / "traces" / f"{load}.csv"
        points = read_rates(path, faster=TRACES[load]).points
    else:
        points = made(load)
    per_s = MEAN_PER_S / Rates(tuple(points)).mean_per_s
    for change in changes:
        if change == "reversed":
            points = [(points[-1][0] - at_s, value) for at_s, value in reversed(points)]
        else:
            per_s *= float(change.removeprefix("x"))
    scaled = tuple((float(at_s), float(value * per_s)) for at_s, value in points)
    return Rates(scaled).repeated(3600 * hours)


def row(trial):
    topology, target = scene(trial.on)
    objective = sj.Objective(target=target, kept=trial.kept)
    stage = Stage(
        topology=topology,
        rates=rates(trial.load, trial.hours),
        objective=objective,
        every_s=trial.every_s or objective.every_s,
        pause_s=trial.pause_s,
        starts_s=trial.starts_s,
    )
    Forgetful.lost = trial.lost
    rehearsal.Simulator = Forgetful
    drs = policy("drs", target=target, every_s=stage.every_s, pauses=trial.pause_s > 0)
    began_s = perf_counter()
    done = rehearsal.rehearse(stage, drs, seed=trial.seed)
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
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--on", default="vld", choices=("vld", "loop", "tree"))
    parser.add_argument("--lost", type=float, default=0.0, help="looks lost, in percent")
    parser.add_argument("--start-time", type=float, default=0.0, help="of processors, seconds")
    parser.add_argument("--pause", type=float, default=0.0, help="of a change, in seconds")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    trials = [
        Trial(
            load=load,
            kept=kept / 100,
            hours=asked.hours,
            every_s=asked.every,
            seed=seed,
            on=asked.on,
            lost=asked.lost / 100,
            pause_s=asked.pause,
            starts_s=asked.start_time,
        )
        for load in asked.loads
        for kept in asked.kept
        for seed in asked.seeds
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

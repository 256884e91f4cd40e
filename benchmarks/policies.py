"""Policies on real loads: whether any rival, tuned, is more punctual and cheaper than drs.

    python benchmarks/policies.py [--seeds 3] [--jobs 2] [--out build/policies] [TRACE…]

Every rival is tried with each setting of a small grid, not only with its best: a setting
dominates drs if it misses the target less often with fewer processor-hours.
Writes a CSV of all runs, and a plot of the trade-off on each load.
"""

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.act.policy.ds2 import Ds2
from sojourn.act.policy.flink import Flink
from sojourn.act.policy.static import Static
from sojourn.act.policy.threshold import Threshold
from sojourn.decide.objective import Objective
from sojourn.measure.interval import Interval
from sojourn.simulate.rehearsal import Stage, rehearse
from sojourn.simulate.trace import read_rates

EXAMPLES = Path(__file__).parent.parent / "examples"
TARGET = sj.Target("p95", 3.5)
OBJECTIVE = Objective(target=TARGET)
MEAN_PER_S = 13.0

# How much faster than it was each load is played: one to six hours are simulated.
LOADS = {"worldcup98": 12.0, "nyc-taxi": 56.0, "twitter-volume": 12.0, "azure-llm": 1.0}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run of one setting of one policy on one load."""

    load: str
    policy: str
    setting: str
    seed: int


def grid():
    """Yield every policy with every setting that is tried."""
    yield "drs", "as it is"
    for utilisation in (0.5, 0.6, 0.7, 0.8, 0.9):
        for down_s in (60, 300):
            yield "threshold", f"{utilisation} {down_s}"
    for factor in (0.0, 0.1, 0.2, 0.4, 0.8):
        yield "ds2", f"{factor}"
    for utilisation in (0.5, 0.6, 0.7, 0.8):
        for faster in (1, 10, 30):
            yield "flink", f"{utilisation} {faster}"
    for quantile in (0.5, 0.8, 0.9, 0.95, 1.0):
        yield "static", f"{quantile}"


def built(trial, rates):
    """Return the policy of a trial, and the load that it is started for."""
    numbers = [float(part) for part in trial.setting.split()] if trial.policy != "drs" else []
    first = rates.at(0.0)
    if trial.policy == "drs":
        every_s = OBJECTIVE.every_s
        return policy("drs", target=TARGET, every_s=every_s, pauses=False), first
    if trial.policy == "threshold":
        return Threshold(utilisation=numbers[0], down_s=numbers[1]), first
    if trial.policy == "ds2":
        return Ds2(scaling_factor=numbers[0]), first
    if trial.policy == "flink":
        return _flink(*numbers), first
    return Static(), float(np.quantile([per_s for _, per_s in rates.points], numbers[0]))


def _flink(utilisation, faster):
    """Return Flink's policy with all its published times shortened: loads are sped up too."""
    published = Flink()
    times = {
        name: getattr(published, name) / faster
        for name in (
            "catch_up_s",
            "restart_s",
            "longest_restart_s",
            "window_s",
            "stabilisation_s",
            "scale_down_s",
            "backlog_s",
        )
    }
    return replace(published, utilisation=utilisation, **times)


@cache
def stage(load):
    """Return the stage of a load."""
    rates = read_rates(
        EXAMPLES / "traces" / f"{load}.csv", times=MEAN_PER_S, faster=LOADS[load]
    )
    topology = sj.read_topology(EXAMPLES / "vld.yaml")
    return Stage(topology=topology, rates=rates, objective=OBJECTIVE, sample_every=1)


def run(trial):
    """Return the score of a trial, and the seconds it took."""
    began, there = perf_counter(), stage(trial.load)
    chosen, per_s = built(trial, there.rates)
    done = rehearse(there, chosen, start=there.plan(per_s), seed=trial.seed)
    return done.score, perf_counter() - began


def summary(trials, scores):
    """Return the estimates of each setting: kept, processor-hours, changes, worst."""
    by_setting = {}
    for trial, score in zip(trials, scores, strict=True):
        by_setting.setdefault((trial.policy, trial.setting), []).append(score)
    return {
        setting: tuple(
            Interval.over([getattr(score, name) for score in some])
            for name in ("kept", "processor_hours", "changes", "worst_s")
        )
        for setting, some in by_setting.items()
    }


def report(load, found):
    """Print a table, and say who dominates drs."""
    drs = found.get(("drs", "as it is"), next(iter(found.values())))
    print(
        f"\n{load}: {TARGET}, {MEAN_PER_S:g} roots/s on average, {LOADS[load]:g} times as fast"
    )
    print(
        f"{'policy':10} {'setting':10} {'missed %':>14} {'processor-hours':>18} "
        f"{'changes':>8} {'worst s':>9}"
    )
    for (name, setting), (kept, hours, changes, worst) in found.items():
        dominates = name != "drs" and kept.value > drs[0].value and hours.value < drs[1].value
        print(
            f"{name:10} {setting:10} "
            f"{100 * (1 - kept.value):7.2f} ± {100 * kept.half_width:4.2f} "
            f"{hours.value:11.1f} ± {hours.half_width:4.1f} "
            f"{changes.value:8.1f} {worst.value:9.1f}" + "  dominates drs" * dominates
        )
    return [
        s for s, f in found.items() if f[0].value > drs[0].value and f[1].value < drs[1].value
    ]


def draw(path, found_by_load):
    """Draw processor-hours against the missed slices for each load, each setting a point."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only for the plot

    columns = min(2, len(found_by_load))
    rows = -(-len(found_by_load) // columns)
    figure = Figure(figsize=(6 * columns, 4.2 * rows), layout="constrained")
    for place, (load, found) in enumerate(found_by_load.items(), 1):
        axes = figure.add_subplot(rows, columns, place)
        _points(axes, found)
        axes.set(
            xlabel="processor-hours",
            ylabel=f"% of minutes that miss {TARGET}",
            title=load,
            xscale="log",
        )
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=90)


def _points(axes, found):
    for colour, name in enumerate(dict.fromkeys(name for name, _ in found)):
        points = [(h, kept) for (n, _), (kept, h, _, _) in found.items() if n == name]
        axes.errorbar(
            [h.value for h, _ in points],
            [100 * (1 - kept.value) for _, kept in points],
            xerr=[np.nan_to_num(h.half_width) for h, _ in points],
            yerr=[100 * np.nan_to_num(kept.half_width) for _, kept in points],
            fmt="*" if name == "drs" else "o",
            markersize=16 if name == "drs" else 5,
            color=f"C{colour}",
            label=name,
            zorder=3 if name == "drs" else 2,
        )


def main():
    """Run everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loads", nargs="*", metavar="TRACE", help=f"of {', '.join(LOADS)}")
    parser.add_argument("--policies", default="", help="only these, by comma")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/policies"))
    asked = parser.parse_args()
    unknown = set(asked.loads) - set(LOADS)
    if unknown:
        parser.error(f"no load is called {', '.join(unknown)}; there are {', '.join(LOADS)}")
    asked.out.mkdir(parents=True, exist_ok=True)
    dominating, found_by_load = {}, {}
    with (asked.out / "runs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            (
                "load",
                "policy",
                "setting",
                "seed",
                "kept",
                "processor_hours",
                "changes",
                "worst_s",
            )
        )
        for load in asked.loads or LOADS:
            trials = [
                Trial(load=load, policy=name, setting=setting, seed=seed)
                for name, setting in grid()
                if not asked.policies or name in asked.policies.split(",")
                for seed in range(1, asked.seeds + 1)
            ]
            with ProcessPoolExecutor(asked.jobs) as pool:
                scores = [score for score, _ in pool.map(run, trials)]
            for trial, score in zip(trials, scores, strict=True):
                rows.writerow(
                    (
                        *(load, trial.policy, trial.setting, trial.seed, score.kept),
                        *(score.processor_hours, score.changes, score.worst_s),
                    )
                )
            found_by_load[load] = summary(trials, scores)
            dominating[load] = report(load, found_by_load[load])
    draw(asked.out / "policies.png", found_by_load)
    print()
    for load, settings in dominating.items():
        who = ", ".join(" ".join(setting) for setting in settings)
        print(f"{load}: {who or 'no rival'} dominates drs")


if __name__ == "__main__":
    main()

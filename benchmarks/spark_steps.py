"""The loop on Spark when the load steps: from idle, doubled, tenfold, and back.

    python benchmarks/spark_steps.py [--rounds 5] [--per-s 13] [--phase 40] [--short]

Three operators of 0.5, 0.55 and 0.02 s (examples/vld.yaml), looked at every second, a mean
target 25 % above the sum of service times. Each round goes from nothing to 13 roots per
second, to 26, to 130, and back to 13. Prints, for each step, the seconds of 5-second means
outside the target (median and worst), changes per minute where the load is steady, and the
processor-seconds used beside the least that would have met the target.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from sojourn.act.best_effort_plan import Goal, aim
from sojourn.act.policy.drs import Drs
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.loop import Loop
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology
from sojourn_trial.cases.sink import load_of, sink_of

FILE = Path(__file__).parent.parent / "examples" / "vld.yaml"
STEPS = {"from idle": 1.0, "doubled": 2.0, "tenfold": 10.0, "back": 1.0}
EVERY_S, IDLE_S, WINDOW_S, LONGER = 1.0, 10.0, 5.0, 1.25


@dataclass(frozen=True)
class Phase:
    """One step of one round, on the wall clock."""

    step: str
    since_s: float
    until_s: float


def phases(rounds, phase_s, once_per_s):
    """Return the phases of all rounds, from 0 on, and the points of their load."""
    found, points, at_s = [], [(0.0, 0.0)], 0.0
    for _ in range(rounds):
        at_s += IDLE_S
        points.append((at_s, 0.0))
        for step, times in STEPS.items():
            per_s = times * once_per_s
            points += [(at_s, per_s), (at_s + phase_s, per_s)]
            found.append(Phase(step, at_s, at_s + phase_s))
            at_s += phase_s
        points.append((at_s, 0.0))
    return found, [*points, (at_s + 3600, 0.0)]


def outside_s(arrived, phase, began_s, target_s):
    """Return the seconds of windows, by birth, in which the mean was above the target."""
    total, at_s = 0.0, phase.since_s
    while at_s < phase.until_s:
        end_s = min(at_s + WINDOW_S, phase.until_s)
        here = [a.took_s for a in arrived if at_s <= a.birth_s - began_s < end_s]
        if here and fmean(here) > target_s:
            total += WINDOW_S
        at_s += WINDOW_S
    return total


def least_processors(topology, per_s, target):
    """Return the fewest processors that meet the target at a rate."""
    load_then = topology.scaled(per_s / topology.arrivals_per_s)
    return sum(aim(load_then, Goal(target=target)).allocation.values())


def report(turns, asked, mine):
    """Return processor-seconds held and changes per minute once steady, of each phase."""
    held, changes = [], []
    for phase in mine:
        here = [turn for turn in turns if phase.since_s <= turn.decision.at_s < phase.until_s]
        held.append(sum(turn.running.processors for turn in here))
        # the second half: the step itself is no steady load
        late = [t for t in here if t.decision.at_s > phase.since_s + asked.phase / 2]
        changed = sum(t.cost is not None and bool(t.cost.changed) for t in late)
        changes.append(changed / (asked.phase / 2 / 60))
    return fmean(held), fmean(changes)


def told(episode):
    """Say how far it is, and why."""
    per_s, running = episode.observation.arrivals_per_s, episode.running.allocation
    processors = tuple(running.values())
    print(
        f"{episode.decision.at_s:5.0f} s  {per_s:5.1f} per s  {processors}  "
        f"{episode.decision.reason}",
        file=sys.stderr,
    )


def run(asked, topology, target):
    """Return the turns of the loop, what arrived at the sink, and what was sent."""
    app = load(str(FILE))
    drs = Drs(goal=Goal(target=target), drain_s=5 * EVERY_S)
    drs = replace(drs, caution=replace(drs.caution, t_ra_s=5 * EVERY_S))
    found, points = phases(asked.rounds, asked.phase, asked.per_s)
    lasts_s = found[-1].until_s + 10
    turns = []
    with SparkEngine(app, str(FILE), SparkSettings(broker_secured=False)) as engine:
        engine.start(topology, Plan.here(dict.fromkeys(app.operators, 1)))
        loop = Loop(engine, topology, drs, every_s=EVERY_S)
        with (
            sink_of(app, engine.servers) as sink,
            load_of(topology, app, engine.servers, points=points, lasts_s=lasts_s) as sending,
        ):
            for episode in loop.run(engine.now_s + lasts_s):
                turns.append(episode)
                if len(turns) % 10 == 0 or (episode.cost and episode.cost.changed):
                    told(episode)
            sent = sending.wait()
            sink.await_roots(sum(sent.sent.values()))
    return found, turns, sink, sent


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--per-s", type=float, default=13.0, help="roots after the first step")
    parser.add_argument("--phase", type=float, default=40.0, help="seconds of each step")
    parser.add_argument("--short", action="store_true", help="one round of 15 s steps")
    asked = parser.parse_args()
    if asked.short:
        asked.rounds, asked.phase = 1, 15.0
    topology = read_topology(FILE)
    service_s = sum(topology.visits[o.name] * o.service_s for o in topology.operators)
    target = Target("mean", LONGER * service_s)
    found, turns, sink, sent = run(asked, topology, target)
    roots = sum(sent.sent.values())
    print(f"target: {target}; {roots} roots sent, {len(sink.roots())} at the sink")
    for step, times in STEPS.items():
        per_s = times * asked.per_s
        mine = [phase for phase in found if phase.step == step]
        out = [outside_s(sink.arrived, p, sent.started_s, target.seconds) for p in mine]
        held, changes = report(turns, asked, mine)
        least = least_processors(topology, per_s, target) * asked.phase / EVERY_S
        print(
            f"{step:10} {per_s:4g} per s: outside {median(out):g} s (median), {max(out):g} s "
            f"(worst of {len(out)}); {changes:.1f} changes per minute once steady; "
            f"{held / least:.2f} times the least processor-seconds"
        )


if __name__ == "__main__":
    main()

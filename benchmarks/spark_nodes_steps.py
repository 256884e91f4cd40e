"""Nodes follow a load that steps up and down: one picture of sojourn time, nodes, bytes, bill.

    python benchmarks/spark_nodes_steps.py [--price-per-hour 0.2] [--out FOLDER] [--short]

Three operators with the proportions of video logo detection (examples/vld.yaml, 4 times as
fast), which wait instead of computing, run on a trial cluster at 16, 52, 32 and 16 roots per
second for 50 s each. A machine has 5 processors. It is started when the loop calls for it, and
stopped after 5 s in which fewer would do. Prints each step, the times to add and to remove a
machine, and the bill beside that of as many machines as the highest load needs. The picture has
the bytes from the driver to nodes and back, too. Writes
steps.png and steps.json to build/nodes-steps.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

from sojourn.act.best_effort_plan import Goal
from sojourn.act.node_scaling import NodeBounds
from sojourn.act.policy.drs import Drs
from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.knowledge import measured_s
from sojourn.loop import Loop
from sojourn.measure.node_costs import Bill
from sojourn.report.panel import Panel, Series
from sojourn.report.plot.panels import draw_rows, figure, save
from sojourn.report.run_panels import allocation, latency
from sojourn.report.run_panels import load as arrivals
from sojourn.report.series import Course
from sojourn.report.turns import turns
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology, write_topology
from sojourn_papers.experiments.time_scale import sped_up
from sojourn_papers.experiments.trial_machines import TrialMachines
from sojourn_trial.cases.sink import load_of

FILE = Path(__file__).parent.parent / "examples" / "vld.yaml"
# Faster: a look then has enough roots for the loop to see a step of the load at once.
FASTER, RATES, PHASE_S = 4.0, (16.0, 52.0, 32.0, 16.0), 50.0
LONGER, EVERY_S = 1.25, 2.0
BOUNDS = NodeBounds(least=1, most=6, processors=5, calm_s=5.0)
FIRST = {"extract": 4, "match": 4, "aggregate": 1}


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The end of a turn: what was measured in it, and what ran then.

    *nodes* run and are paid for, of which some are *in_use*; *bytes_per_s* go from the driver
    to them and back. *bill* is that of all so far, and *bill_of_most* what it would be with as
    many as ever ran.
    """

    at_s: float
    per_s: float
    mean_s: float | None
    processors: int
    nodes: int
    in_use: int
    bytes_per_s: float
    bill: float
    bill_of_most: float


def billed(turns_of, price):
    """Return the moments of turns, each with the machines that run, and those in use."""
    found, node_s, most = [], 0.0, max(nodes for _, nodes, *_ in turns_of)
    began_s = last_s = turns_of[0][0].observation.since_s
    for episode, nodes, in_use, bytes_per_s in turns_of:
        seen = episode.observation
        mean_s = measured_s(seen, "mean")
        node_s += nodes * (seen.at_s - last_s)
        last_s = seen.at_s
        found.append(
            Moment(
                at_s=seen.at_s,
                per_s=seen.arrivals_per_s,
                mean_s=mean_s if isfinite(mean_s) else None,
                processors=episode.running.processors,
                nodes=nodes,
                in_use=in_use,
                bytes_per_s=bytes_per_s,
                bill=Bill.of(node_s, price).cost,
                bill_of_most=Bill.of(most * (last_s - began_s), price).cost,
            )
        )
    return found


def cautious(target):
    """Return a policy whose caution is for a run of minutes instead of days."""
    drs = Drs(goal=Goal(target=target), drain_s=5.0)
    caution = replace(drs.caution, t_ra_s=5.0, confirm_s=3 * EVERY_S, calm=2.0)
    return replace(drs, caution=caution)


def run(folder, phase_s, topology, target):
    """Return the turns with the machines at their ends, and the machines that changed."""
    address = folder / "vld.json"
    write_topology(topology, address)
    app = load(str(address))
    points = [
        (phase_s * (number + after), per_s)
        for number, per_s in enumerate(RATES)
        for after in (0, 1)
    ]
    lasts_s, policy, found = phase_s * len(RATES), cautious(target), []
    with TrialMachines(BOUNDS, sum(FIRST.values())) as machines:
        settings = replace(machines.settings, broker_secured=False)
        with SparkEngine(app, str(address), settings) as engine:
            engine.start(topology, Plan.here(FIRST))
            with (
                machines.following(engine),
                load_of(topology, app, engine.servers, points=points, lasts_s=lasts_s),
            ):
                began_s = engine.now_s
                loop = Loop(engine, topology, policy, every_s=EVERY_S, bounds=BOUNDS)
                for episode in loop.run(began_s + lasts_s):
                    there = machines.number, len(engine.nodes), between_nodes(engine)
                    found.append((episode, *there))
                    if episode.cost and episode.cost.changed:
                        told(episode, machines.number)
                changes, restarts = machines.changes, engine.health().restarts
    if any(restarts.values()):
        print(f"started again: {restarts}", file=sys.stderr)
    return began_s, found, changes


def between_nodes(engine):
    """Return the bytes per second from the driver to nodes, and back."""
    nodes = engine.health().nodes
    return sum(node.received_bytes_per_s + node.sent_bytes_per_s for node in nodes)


def told(episode, nodes):
    """Say what is changed, and why."""
    decision = episode.decision
    print(
        f"{decision.at_s:5.0f} s  {nodes} nodes  {decision.before} to {decision.after}: "
        f"{decision.reason}",
        file=sys.stderr,
    )


def draw(path, episodes, moments, changes, target):
    """Draw load, sojourn time, processors, nodes, bytes and bill over the same time."""
    course = Course(target)
    for turn in turns(episodes, target.statistic):
        course.add(turn)
    edges = course.edges

    def panel(name, lines, *, whole=False):
        series = [Series(label=label, x=edges, y=values) for label, values in lines.items()]
        return Panel(
            kind="steps",
            title=name,
            x_label="time",
            y_label=name,
            series=tuple(series),
            marks=tuple(course.marks),
            height=2,
            over_time=True,
            whole=whole,
        )

    nodes = {
        "running": [float(moment.nodes) for moment in moments],
        "in use": [float(moment.in_use) for moment in moments],
    }
    most = max(moment.nodes for moment in moments)
    bills = {
        "bill": [moment.bill for moment in moments],
        f"of {most} nodes": [moment.bill_of_most for moment in moments],
    }
    picture = figure(11, 12)
    shown = [
        arrivals(course),
        latency(course),
        allocation(course),
        panel("nodes", nodes, whole=True),
        panel("kB per s", {"between nodes": [each.bytes_per_s / 1e3 for each in moments]}),
        panel("bill", bills),
    ]
    draw_rows(picture, shown)
    taken = ", ".join(
        f"{kind} in {median(each.took_s for each in changes if each.kind == kind):.1f} s"
        for kind in ("added", "removed")
        if any(each.kind == kind for each in changes)
    )
    picture.suptitle(f"VLD on a trial cluster, 5 processors per node; a node is {taken}")
    save(picture, path)


def main():
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--price-per-hour", type=float, default=0.2, help="of one node")
    parser.add_argument("--out", type=Path, default=Path("build/nodes-steps"))
    parser.add_argument("--short", action="store_true", help="15 s at each rate")
    asked = parser.parse_args()
    phase_s, topology = 15.0 if asked.short else PHASE_S, sped_up(read_topology(FILE), FASTER)
    service_s = sum(topology.visits[o.name] * o.service_s for o in topology.operators)
    target = Target("mean", LONGER * service_s)
    with TemporaryDirectory(prefix="nodes-steps-") as folder:
        began_s, found, changes = run(Path(folder), phase_s, topology, target)
    # nodes also change between turns, but the course has a value for each turn
    moments = billed([each for each in found if each[0].looked], asked.price_per_hour)
    print(f"target: {target}; a node costs {asked.price_per_hour:g} per hour")
    for number, per_s in enumerate(RATES):
        since_s = began_s + number * phase_s
        here = [m for m in moments if since_s < m.at_s <= since_s + phase_s]
        late = [m.mean_s for m in here[len(here) // 2 :] if m.mean_s is not None]
        print(
            f"{per_s:4g} per s: {here[-1].processors} processors on {here[-1].nodes} nodes at "
            f"the end; mean of the second half {fmean(late):.2f} s; "
            f"{sum((m.mean_s or 0) > target.seconds for m in here)} of {len(here)} turns above"
        )
    for change in changes:
        print(f"{change.at_s - began_s:5.0f} s: {change}")
    last, most = moments[-1], max(moment.nodes for moment in moments)
    print(f"bill: {last.bill:.4f}; {most} nodes all the time: {last.bill_of_most:.4f}")
    asked.out.mkdir(parents=True, exist_ok=True)
    report = {
        "target_s": target.seconds,
        "price_per_hour": asked.price_per_hour,
        "bill": last.bill,
        "bill_of_most": last.bill_of_most,
        "turns": [asdict(moment) for moment in moments],
        "machines": [asdict(change) for change in changes],
    }
    (asked.out / "steps.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    draw(asked.out / "steps.png", [episode for episode, *_ in found], moments, changes, target)
    print(f"written: {asked.out / 'steps.png'}, {asked.out / 'steps.json'}")


if __name__ == "__main__":
    main()

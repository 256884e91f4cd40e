"""Records through ten rescales and one `kill -9` of everything: nothing is lost.

    python benchmarks/spark_faults.py [--records 200000] [--per-s 1000] [--short]

Light operators, three in a chain. First ten rescales, which must repeat nothing; then a
processor, a host, a Python worker of Spark, the broker and the driver are killed, each under
load, and the last two started again. Every root is looked for at the sink, and what comes
twice is counted by its id. It cannot be more than what was not committed at the time. After
the driver's death nothing of it may be left: no process, and nothing in the temporary folder.
The default run sends for three to four minutes, and takes about five.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

from driven import Driver, topology_of
from on_spark import load_of, sink_of
from sojourn.app.loading import load
from sojourn.spark.broker import Broker
from sojourn.spark.cluster import Cluster
from sojourn.spark.kept_state import KeptState
from sojourn.spark.offsets import Offsets
from sojourn.spark.ports import free_ports

ADDRESS = "light:app"
ALLOCATION = {"first": 2, "second": 2, "third": 2}
# The first half of what is sent goes through the rescales, the rest in equal parts.
RESCALES = [
    *({"first": 4}, {"second": 1}, {"third": 5}, {"first": 1, "second": 3}, {"third": 1}),
    *({"first": 3}, {"second": 6}, {"first": 2, "third": 4}, {"second": 2}, {"third": 2}),
]
BROKER_AWAY_S = 2.0
# Once all roots are there, what comes again may still be on its way.
QUIET_S = 3.0
PATIENCE_S = 300.0


@dataclass
class Outcome:
    """What became of the records of a phase.

    *uncommitted* is the most that may come twice, *silent_s* the longest time without a new
    root at the sink.
    """

    phase: str
    roots: int = 0
    lost: int = 0
    duplicates: int = 0
    uncommitted: int = 0
    replayed: int = 0
    restarts: dict = field(default_factory=dict)
    silent_s: float = 0.0
    notes: list = field(default_factory=list)


class Bench:
    """The broker, the application, and who reads its sink."""

    def __init__(self, folder, broker, driver, sink, *, per_s):
        self.folder, self.broker, self.driver, self.sink = folder, broker, driver, sink
        self.per_s, self.app = per_s, load(ADDRESS)
        self.servers = broker.bootstrap_servers
        self.left = []
        self._ids, self._read, self._roots = set(), 0, 0
        self._reads = {
            name: self.app.topic(operator.reads[0].name)
            for name, operator in self.app.operators.items()
        }
        self._offsets = Offsets(
            Cluster(self.servers).client(), dict.fromkeys(self._reads.values(), 1)
        )

    def phase(self, name, records, event):
        """Return what became of *records* during which *event* happened."""
        say(f"{name}: {records} records")
        outcome, before = Outcome(name), self.driver.health()
        committed = self._committed()
        lasts_s = records / self.per_s
        load_ = load_of(
            topology_of(ADDRESS, self.app),
            self.app,
            self.servers,
            points=[(0.0, self.per_s)],
            lasts_s=lasts_s,
            gaps="constant",
        )
        with load_ as sending:
            committed, ends = event(lasts_s, outcome) or (committed, committed)
            sent = sending.wait()
        if any(sent.failed.values()):
            outcome.notes.append(f"{sum(sent.failed.values())} not taken by the broker")
        self._await_all()
        after = self.driver.health()
        if after["failure"]:
            raise SystemExit(f"{name}: the application stopped: {after['failure']}")
        outcome.restarts = {
            operator: restarts - before["restarts"][operator]
            for operator, restarts in after["restarts"].items()
            if restarts > before["restarts"][operator]
        }
        outcome.replayed = max(0, after["replayed"] - before["replayed"])
        again = ALLOCATION if name == "driver killed" else outcome.restarts
        outcome.uncommitted = sum(ends[operator] - committed[operator] for operator in again)
        self._count(outcome)
        return outcome

    # -- what happens ---------------------------------------------------------------------

    def rescales(self, lasts_s, outcome):
        """Rescale ten times, evenly."""
        for number, allocation in enumerate(RESCALES):
            time.sleep(lasts_s / (len(RESCALES) + 1))
            outcome.notes += [] if self.driver.scale(**allocation) else [f"{number} no change"]
        outcome.notes.append(f"{len(RESCALES)} rescales")

    def killed(self, which):
        """Return the event that one of the processes *which* finds is killed."""

        def event(lasts_s, _outcome):
            time.sleep(lasts_s / 2)
            committed = self._committed()
            which().kill()
            time.sleep(1.0)  # by now it is noticed
            return committed, self._ends()

        return event

    def broker_killed(self, lasts_s, outcome):
        """Kill the broker, and start it again on what it left."""
        time.sleep(lasts_s / 2)
        committed = self._committed()
        os.killpg(self.broker.process_group, signal.SIGKILL)
        began_s = time.monotonic()
        self.broker.stop()
        time.sleep(BROKER_AWAY_S)
        self.broker.start()
        outcome.notes.append(f"broker away {time.monotonic() - began_s:.1f} s")
        return committed, self._ends()

    def driver_killed(self, lasts_s, outcome):
        """Kill what drives the application, and start it again on its state."""
        time.sleep(lasts_s / 2)
        committed = self._committed()
        left, took_s = self.driver.kill()
        ends = self._ends()
        self.left += left
        outcome.notes.append(
            f"{len(left)} things left" if left else f"nothing left after {took_s:.1f} s"
        )
        outcome.notes.append(f"started again in {self.driver.start():.1f} s")
        return committed, ends

    # -- what is counted ------------------------------------------------------------------

    def _ends(self):
        ends = self._offsets.partitions()
        return {name: ends[topic][0] for name, topic in self._reads.items()}

    def _committed(self):
        state = KeptState(self.driver.folder)
        return {
            name: state.positions(name, {topic: {0: 0}})[topic][0]
            for name, topic in self._reads.items()
        }

    def _await_all(self):
        """Return when all roots are at the sink, and nothing has come for a while."""
        self.sink.await_roots(self._ends()["first"], patience_s=PATIENCE_S)
        seen, since_s = len(self.sink.arrived), time.monotonic()
        while time.monotonic() < since_s + QUIET_S:
            time.sleep(0.1)
            if len(self.sink.arrived) > seen:
                seen, since_s = len(self.sink.arrived), time.monotonic()

    def _count(self, outcome):
        sent = self._ends()["first"]
        outcome.roots, self._roots = sent - self._roots, sent
        came = self.sink.arrived[self._read :]
        self._read += len(came)
        new_s = []
        for arrived in came:
            if arrived.identity in self._ids:
                outcome.duplicates += 1
            else:
                self._ids.add(arrived.identity)
                new_s.append(arrived.read_s)
        outcome.silent_s = max((b - a for a, b in pairwise(new_s)), default=0.0)
        outcome.lost = sent - len(self.sink.roots())


def say(line):
    """Tell how far it is."""
    sys.stderr.write(f"{line}\n")


def run(folder, *, records, per_s, batch_s):
    """Return the outcome of each phase, and what was left of the driver that was killed."""
    app, each = load(ADDRESS), records // 10
    port, _ = free_ports(None)
    with Broker(data=folder / "broker", port=port) as broker:
        servers = broker.bootstrap_servers
        driver = Driver(folder, ADDRESS, servers, batch_s=batch_s, allocation=ALLOCATION)
        with driver, sink_of(app, servers) as sink:
            bench = Bench(folder, broker, driver, sink, per_s=per_s)
            outcomes = [
                bench.phase("rescales", records - 5 * each, bench.rescales),
                bench.phase(
                    "processor killed",
                    each,
                    bench.killed(lambda: driver.processors("second")[0]),
                ),
                bench.phase(
                    "Python worker killed", each, bench.killed(lambda: driver.workers()[0])
                ),
                bench.phase("host killed", each, bench.killed(lambda: driver.host("second"))),
                bench.phase("broker killed", each, bench.broker_killed),
                bench.phase("driver killed", each, bench.driver_killed),
            ]
    return outcomes, bench.left


def printed(outcomes):
    """Print what became of the records, phase by phase."""
    head = ("phase", "records", "lost", "twice", "at most", "replayed", "silent s")
    print(f"{head[0]:22}" + "".join(f"{title:>9}" for title in head[1:]) + "  restarts, notes")
    lost_before = 0
    for outcome in outcomes:
        restarts = [f"{name} {n}" for name, n in outcome.restarts.items()]
        numbers = (
            *(outcome.roots, outcome.lost - lost_before, outcome.duplicates),
            *(outcome.uncommitted, outcome.replayed, f"{outcome.silent_s:.1f}"),
        )
        print(
            f"{outcome.phase:22}"
            + "".join(f"{number:>9}" for number in numbers)
            + f"  {', '.join(restarts + outcome.notes)}"
        )
        lost_before = outcome.lost
    roots = sum(outcome.roots for outcome in outcomes)
    twice = sum(outcome.duplicates for outcome in outcomes)
    print(f"of {roots} roots {outcomes[-1].lost} were lost, {twice} records came twice")


def main():
    """Measure, print, and fail if anything was lost, repeated by rescales, or left behind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--per-s", type=float, default=1000.0)
    parser.add_argument("--batch", type=float, default=15.0)
    parser.add_argument("--short", action="store_true", help="few records, to see that it runs")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    records, per_s, batch_s = asked.records, asked.per_s, asked.batch
    if asked.short:
        records, per_s, batch_s = 8000, 200.0, 5.0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        outcomes, left = run(Path(folder), records=records, per_s=per_s, batch_s=batch_s)
    printed(outcomes)
    for thing in left:
        print(f"left behind: {thing}")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    return int(bool(outcomes[-1].lost or outcomes[0].duplicates or left))


if __name__ == "__main__":
    sys.exit(main())

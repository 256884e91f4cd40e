"""Records through ten rescales and one `kill -9` of everything: nothing is lost.

    python benchmarks/spark_faults.py [--records 200000] [--per-s 1000] [--short]

Light operators, three in a chain. First ten rescales, which must repeat nothing; then a
processor, a host, a Python worker of Spark, the broker and the driver are killed, each under
load, and the last two started again. Every root is looked for at the sink, and what comes
twice is counted by its id. It cannot be more than what was not committed at the time. After
the driver's death nothing of it may be left: no process, and nothing in the temporary folder.
The default run sends for more than three minutes, and takes about five.
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

from sojourn.app.loading import load
from sojourn.errors import EngineError
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.kafka.ports import free_ports
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn_trial.cases.sink import load_of, sink_of
from sojourn_trial.kills.driven import Driver, topology_of

ADDRESS = "light:app"
ALLOCATION = {"first": 2, "second": 2, "third": 2}
# Four tenths of what is sent go through the rescales, one through each kill, and one after.
RESCALES = [
    *({"first": 4}, {"second": 1}, {"third": 5}, {"first": 1, "second": 3}, {"third": 1}),
    *({"first": 3}, {"second": 6}, {"first": 2, "third": 4}, {"second": 2}, {"third": 2}),
]
BROKER_AWAY_S = 2.0
PATIENCE_S = 300.0


@dataclass
class Phase:
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
    """The broker, the application under load, and who reads its sink.

    Phases begin and end with what has arrived at the sink, so that all happens under load,
    whatever the machine can carry.
    """

    def __init__(self, broker, driver, sink):
        self.broker, self.driver, self.sink = broker, driver, sink
        self.left = []
        app = load(ADDRESS)
        self._reads = {
            name: app.topic(operator.reads[0].name) for name, operator in app.operators.items()
        }
        self._offsets = Offsets(
            Cluster(broker.bootstrap_servers).client(), dict.fromkeys(self._reads.values(), 1)
        )
        self._ids, self._read, self._began = set(), 0, 0

    def phase(self, name, until, event):
        """Return what became of the records up to *until*, during which *event* happened."""
        say(f"{name}: up to record {until}")
        outcome, before = Phase(name), self.driver.health()
        event_s = time.time()
        committed, ends = event(self._began, until, outcome) or ({}, {})
        self._await_until(until)
        after = self.driver.health()
        if after["failure"]:
            raise SystemExit(f"{name}: the application stopped: {after['failure']}")
        if event == self.driver_killed:
            before = dict.fromkeys(before, 0) | {"restarts": dict.fromkeys(self._reads, 0)}
        outcome.restarts = {
            operator: restarts - before["restarts"][operator]
            for operator, restarts in after["restarts"].items()
            if restarts > before["restarts"][operator]
        }
        outcome.replayed = max(0, after["replayed"] - before["replayed"])
        again = self._reads if event == self.driver_killed else outcome.restarts
        outcome.uncommitted = sum(
            ends[operator] - committed[operator] for operator in again if operator in ends
        )
        self._count(outcome, until, event_s)
        return outcome

    # -- what happens ---------------------------------------------------------------------

    def rescales(self, began, until, outcome):
        """Rescale ten times, evenly."""
        for number, allocation in enumerate(RESCALES, start=1):
            at = began + number * (until - began) // (len(RESCALES) + 1)
            self.sink.await_roots(at, patience_s=PATIENCE_S)
            outcome.notes += [] if self.driver.scale(**allocation) else [f"{number} no change"]
        outcome.notes.append(f"{len(RESCALES)} rescales")

    def killed(self, target, operator=None):
        """Return the event that a process is killed."""

        def event(began, until, _outcome):
            committed = self._middle(began, until)
            self.driver.victims(target, operator)[0].kill()
            time.sleep(1.0)  # by now it is noticed
            return committed, self._ends()

        return event

    def broker_killed(self, began, until, outcome):
        """Kill the broker, and start it again on what it left."""
        committed = self._middle(began, until)
        os.killpg(self.broker.process_group, signal.SIGKILL)
        began_s = time.monotonic()
        self.broker.stop()
        time.sleep(BROKER_AWAY_S)
        self.broker.start()
        outcome.notes.append(f"broker away {time.monotonic() - began_s:.1f} s")
        return committed, self._ends()

    def driver_killed(self, began, until, outcome):
        """Kill what drives the application, and start it again on its state."""
        committed = self._middle(began, until)
        left, took_s = self.driver.kill()
        ends = self._ends()
        self.left += left
        outcome.notes.append(
            f"{len(left)} things left" if left else f"nothing left after {took_s:.1f} s"
        )
        outcome.notes.append(f"started again in {self.driver.start():.1f} s")
        return committed, ends

    # -- what is counted ------------------------------------------------------------------

    def _middle(self, began, until):
        """Return what is committed when half of the records have arrived."""
        self.sink.await_roots((began + until) // 2, patience_s=PATIENCE_S)
        state = Checkpoints(self.driver.folder)
        return {
            name: state.positions(name, {topic: {0: 0}})[topic][0]
            for name, topic in self._reads.items()
        }

    def _ends(self):
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                ends = self._offsets.partitions()
                break
            except EngineError:  # a broker that was killed takes a while
                if time.monotonic() > until_s:
                    raise
        return {name: ends[topic][0] for name, topic in self._reads.items()}

    def sent(self):
        """Return how many roots there are."""
        return self._ends()["first"]

    def _missing(self, until):
        """Return the roots that have not arrived, of those before *until*."""
        arrived = {int(root.rpartition("/")[2]) for root in self.sink.roots()}
        return [n for n in range(self._began, until) if n not in arrived]

    def _await_until(self, until):
        """Return when all roots before *until* are at the sink, or never will be."""
        until_s = time.monotonic() + PATIENCE_S
        while self._missing(until) and time.monotonic() < until_s:
            time.sleep(0.2)

    def _count(self, outcome, until, event_s):
        outcome.lost = len(self._missing(until))
        outcome.roots, self._began = until - self._began, until
        came = self.sink.arrived[self._read :]
        self._read += len(came)
        new_s = []
        for arrived in came:
            if arrived.identity in self._ids:
                outcome.duplicates += 1
            else:
                self._ids.add(arrived.identity)
                new_s.append(arrived.read_s)
        gaps_s = [b - a for a, b in pairwise(new_s) if a >= event_s]
        outcome.silent_s = max(gaps_s, default=0.0)


def say(line):
    """Tell how far it is."""
    sys.stderr.write(f"{line}\n")


def run(folder, *, records, per_s, batch_s):
    """Return the outcome of each phase, and what was left of the driver that was killed."""
    app, each = load(ADDRESS), records // 10
    port, _ = free_ports(None)
    with Broker(data=folder / "broker", port=port, secured=False) as broker:
        servers = broker.bootstrap_servers
        Cluster(servers).ensure([app.topic(stream) for stream in app.streams], 1)
        driver = Driver(folder, ADDRESS, servers, batch_s=batch_s, allocation=ALLOCATION)
        load_ = load_of(
            topology_of(ADDRESS, app),
            app,
            servers,
            points=[(0.0, per_s)],
            lasts_s=records / per_s,
            gaps="constant",
        )
        with driver, sink_of(app, servers) as sink, load_:
            bench = Bench(broker, driver, sink)
            events = {
                "rescales": bench.rescales,
                "processor killed": bench.killed("processor", "second"),
                "Python worker killed": bench.killed("worker"),
                "host killed": bench.killed("host", "second"),
                "broker killed": bench.broker_killed,
                "driver killed": bench.driver_killed,
            }
            outcomes = [
                bench.phase(name, records - (len(events) + 1 - number) * each, event)
                for number, (name, event) in enumerate(events.items(), start=1)
            ]
            load_.wait()
            say("the rest")
            outcomes.append(bench.phase("the rest", bench.sent(), lambda *_: None))
    return outcomes, bench.left


def printed(outcomes):
    """Print what became of the records, phase by phase."""
    head = ("phase", "records", "lost", "twice", "at most", "replayed", "silent s")
    print(f"{head[0]:22}" + "".join(f"{title:>9}" for title in head[1:]) + "  restarts, notes")
    for outcome in outcomes:
        restarts = [f"{name} {n}" for name, n in outcome.restarts.items()]
        numbers = (
            *(outcome.roots, outcome.lost, outcome.duplicates),
            *(outcome.uncommitted, outcome.replayed, f"{outcome.silent_s:.1f}"),
        )
        print(
            f"{outcome.phase:22}"
            + "".join(f"{number:>9}" for number in numbers)
            + f"  {', '.join(restarts + outcome.notes)}"
        )
    roots = sum(outcome.roots for outcome in outcomes)
    twice = sum(outcome.duplicates for outcome in outcomes)
    lost = sum(outcome.lost for outcome in outcomes)
    print(f"of {roots} roots {lost} were lost, {twice} records came twice")


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
    lost = sum(outcome.lost for outcome in outcomes)
    return int(bool(lost or outcomes[0].duplicates or left))


if __name__ == "__main__":
    sys.exit(main())

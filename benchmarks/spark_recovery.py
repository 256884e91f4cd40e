"""How long after a `kill -9` latency is as it was: of a processor, worker, host, driver.

    python benchmarks/spark_recovery.py [--rounds 3] [--batch 20] [--short]

Three operators that wait 100, 110 and 20 ms on average, in a chain at a utilisation of about
0.65. Roots are counted at the sink, by the second in which they were born. Latency is as it
was once its mean over a second, and over each of the two that follow, is within 1.5 times of
what it is when nothing happens. The default run takes about seven minutes.
"""

import argparse
import json
import sys
import tempfile
import time
from bisect import bisect_left
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from sojourn.app.loading import load
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn_trial.cases.sink import load_of, sink_of
from sojourn_trial.kills.driven import Driver, topology_of

PER_S = 30.0
ALLOCATION = {"extract": 5, "match": 5, "aggregate": 1}
CHAIN = {
    "format": 1,
    "name": "recovery",
    "arrivals": {"in": {"per_s": PER_S, "into": "extract"}},
    "operators": {
        "extract": {"service_s": 0.1, "emits": {"match": 1}},
        "match": {"service_s": 0.11, "emits": {"aggregate": 1}},
        "aggregate": {"service_s": 0.02},
    },
}
KILLED = ("processor", "Python worker", "host", "driver")
WITHIN = 1.5
WINDOW_S, STEP_S, WINDOWS = 1.0, 0.25, 3
PATIENCE_S = 180.0


@dataclass(frozen=True)
class Killed:
    """What was killed, when, until when it was watched, and what came of it.

    *duplicates* are those until then; *replayed* are records answered from memory.
    """

    what: str
    at_s: float
    until_s: float
    duplicates: int
    replayed: int
    restarts: int


class Latency:
    """The latency of roots, by when they were born."""

    def __init__(self, sink):
        self._sink, self._read = sink, 0
        self._seen, self._next = {}, 0
        self._ids = set()
        self.duplicates = 0
        self.births_s, self._took_s = [], []

    def look(self):
        """Take in what has arrived; roots count once all that are older have arrived."""
        for arrived in self._sink.arrived[self._read :]:
            self._read += 1
            self.duplicates += arrived.identity in self._ids
            self._ids.add(arrived.identity)
            offset = int(arrived.root.rpartition("/")[2])
            self._seen.setdefault(offset, arrived)
        while self._next in self._seen:
            arrived = self._seen[self._next]
            self.births_s.append(arrived.birth_s)
            self._took_s.append(arrived.took_s)
            self._next += 1

    def mean_s(self, since_s, until_s):
        """Return the mean of the roots born in that time; None where nobody knows yet."""
        if not self.births_s or self.births_s[-1] < until_s:
            return None
        born = slice(bisect_left(self.births_s, since_s), bisect_left(self.births_s, until_s))
        return fmean(self._took_s[born]) if self._took_s[born] else 0.0

    def recovered_s(self, kill_s, most_s):
        """Return the seconds until the mean is *most_s* or less; None if it is not, so far."""
        at_s = kill_s
        while True:
            means = [
                self.mean_s(at_s + i * WINDOW_S, at_s + (i + 1) * WINDOW_S)
                for i in range(WINDOWS)
            ]
            if None in means:
                return None
            if all(mean <= most_s for mean in means):
                return at_s - kill_s
            at_s += STEP_S

    def means_s(self, since_s, until_s):
        """Return the means of all windows of that time."""
        number = int((until_s - since_s - WINDOW_S) / STEP_S) + 1
        starts_s = [since_s + i * STEP_S for i in range(number)]
        means = [self.mean_s(start_s, start_s + WINDOW_S) for start_s in starts_s]
        return [mean for mean in means if mean is not None]


def say(line):
    """Tell how far it is."""
    sys.stderr.write(f"{line}\n")


def kill(what, number, driver):
    """Kill it, and start again what nobody else does."""
    if what == "driver":
        driver.kill(patience_s=0.0)
        driver.start()
    elif what == "Python worker":
        workers = driver.victims("worker")
        workers[number % len(workers)].kill()
    else:
        driver.victims(what, "match")[0].kill()


def killed(what, number, driver, latency, *, most_s):
    """Return what happened after a kill, once latency is as it was."""
    latency.look()
    duplicates, health = latency.duplicates, driver.health()
    at_s = time.time()
    kill(what, number, driver)
    until_s = at_s + PATIENCE_S
    while (took_s := latency.recovered_s(at_s, most_s)) is None and time.time() < until_s:
        time.sleep(STEP_S)
        latency.look()
    shown = f"after {took_s:.1f} s" if took_s is not None else f"not within {PATIENCE_S:g} s"
    say(f"{what} {number + 1}: latency as it was {shown}")
    after = driver.health()
    if after["failure"]:
        raise SystemExit(f"the application stopped: {after['failure']}")
    restarts = sum(after["restarts"].values())
    return Killed(
        what=what,
        at_s=at_s,
        until_s=time.time(),
        duplicates=duplicates,
        replayed=max(0, after["replayed"] - health["replayed"]),
        restarts=restarts - (0 if what == "driver" else sum(health["restarts"].values())),
    )


def await_all_but_new(latency):
    """Return when all roots have arrived but those of the last second or two."""
    until_s = time.time() + PATIENCE_S
    while not latency.births_s or latency.births_s[-1] < time.time() - 2 * WINDOW_S:
        if time.time() > until_s:
            raise SystemExit("records do not come through; the machine is too busy")
        time.sleep(STEP_S)
        latency.look()


def run(folder, *, rounds, batch_s, quiet_s):
    """Return latency, what was killed, and the quiet times before."""
    path = folder / "recovery.json"
    path.write_text(json.dumps(CHAIN))
    app = load(str(path))
    with Broker(secured=False) as broker:
        servers = broker.bootstrap_servers
        Cluster(servers).ensure(map(app.topic, app.streams), 1)
        driver = Driver(folder, str(path), servers, batch_s=batch_s, allocation=ALLOCATION)
        with driver, sink_of(app, servers) as sink:
            latency, events, quiet = Latency(sink), [], []
            with load_of(topology_of(str(path), app), app, servers) as sending:
                say("warming up")
                time.sleep(quiet_s)
                await_all_but_new(latency)
                for number in range(rounds):
                    for what in KILLED:
                        began_s = time.time()
                        time.sleep(quiet_s)
                        quiet.append((began_s, time.time()))
                        await_all_but_new(latency)
                        steady_s = _steady_s(latency, quiet)
                        events.append(
                            killed(what, number, driver, latency, most_s=WITHIN * steady_s)
                        )
                sending.stop()
                sent = sum(sending.sent.sent.values())
            sink.await_roots(sent, patience_s=PATIENCE_S)
            latency.look()
            lost = sent - len(sink.roots())
    return latency, events, quiet, lost


def _steady_s(latency, quiet):
    """Return the mean latency while nothing happened."""
    # whoever was born at the very end is not there yet
    means = [latency.mean_s(since_s, until_s - 2 * WINDOW_S) for since_s, until_s in quiet]
    return fmean(mean for mean in means if mean is not None)


def results(latency, events, quiet):
    """Return what is to be told of each kind of kill."""
    steady_s = _steady_s(latency, quiet)
    most_s = WITHIN * steady_s
    calm = [mean for times in quiet for mean in latency.means_s(*times)]
    twice = [*(event.duplicates for event in events), latency.duplicates]
    twice = [after - before for before, after in pairwise(twice)]
    table = []
    for what in KILLED:
        of_it = [event for event in events if event.what == what]
        took_s = [latency.recovered_s(event.at_s, most_s) for event in of_it]
        worst_s = [
            max(latency.means_s(event.at_s - WINDOW_S, event.until_s), default=0.0)
            for event in of_it
        ]
        table.append(
            {
                "what": what,
                "recovered_s": [PATIENCE_S if took is None else took for took in took_s],
                "worst_s": worst_s,
                "duplicates": [
                    n for event, n in zip(events, twice, strict=True) if event.what == what
                ],
                "replayed": [event.replayed for event in of_it],
                "restarts": [event.restarts for event in of_it],
            }
        )
    beyond = sum(mean > most_s for mean in calm) / max(1, len(calm))
    return {"steady_s": steady_s, "beyond_when_calm": beyond, "killed": table}


def printed(found, lost):
    """Print it."""
    print(
        f"steady: mean {found['steady_s']:.3f} s; {100 * found['beyond_when_calm']:.0f} % of "
        f"seconds are beyond {WITHIN} times that when nothing happens"
    )
    head = f"{'killed':16}{'within 1.5x after':>24}{'worst second':>14}"
    print(f"{head}{'twice':>8}{'replayed':>10}")
    for row in found["killed"]:
        took_s = row["recovered_s"]
        took = f"{median(took_s):.1f} s ({min(took_s):.1f}-{max(took_s):.1f})"
        print(
            f"{row['what']:16}{took:>24}{median(row['worst_s']):>12.2f} s"
            f"{median(row['duplicates']):>8.0f}{median(row['replayed']):>10.0f}"
        )
    print(f"medians of {len(took_s)} each; the prototype took 15-25 s after a worker or a host")
    print(f"{lost} roots lost")


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=float, default=20.0)
    parser.add_argument("--quiet", type=float, default=10.0, help="seconds before each kill")
    parser.add_argument("--short", action="store_true", help="one round, to see that it runs")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rounds, batch_s, quiet_s = asked.rounds, asked.batch, asked.quiet
    if asked.short:
        rounds, batch_s, quiet_s = 1, 5.0, 5.0
    with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
        latency, events, quiet, lost = run(
            Path(folder), rounds=rounds, batch_s=batch_s, quiet_s=quiet_s
        )
    found = results(latency, events, quiet)
    printed(found, lost)
    if asked.json:
        told = {**found, "lost": lost, "events": [asdict(event) for event in events]}
        asked.json.write_text(json.dumps(told, indent=1))
    return int(lost != 0)


if __name__ == "__main__":
    sys.exit(main())

"""How long a change of processors takes on Spark: the message until a new one takes a record.

    python benchmarks/spark_rescale.py [--changes 20] [--short]

An operator of 20 ms at 150 records per second gets 12 processors, then 4, again and again.
Prints the time from the message until the first record on a new processor (median and worst)
and the longest gap in the output around a change beside that of the same length elsewhere.
Then the same with `repartition(k)`, where a change is another query, some few times.
"""

import argparse
import json
import tempfile
import time
from math import isnan
from pathlib import Path
from statistics import median

import numpy as np
from confluent_kafka import Producer

import repartition
import rescale_app
from sojourn.app.operator import Hints
from sojourn.decide.plan import Plan
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.cases.sink import Sink, load_of

PER_S, FEW, MANY = 150.0, 4, 12
AROUND_S = 1.0


class Worked(Sink):
    """Keeps, of every record, when it was read, who worked on it and from when."""

    def __init__(self, servers, topic, parse):
        self._parse = parse
        super().__init__(servers, [topic])

    def _keep(self, message):
        number, pid, began_s = self._parse(message.value())
        self.arrived.append((time.time(), number, pid, began_s))


def of_json(value):
    """Return what our operator wrote."""
    told = json.loads(value)
    return told["seed"], told["pid"], told["began"]


def of_text(value):
    """Return what the tasks of `repartition` wrote."""
    number, pid, began_s = value.split()
    return int(number), int(pid), float(began_s)


def taken_s(arrived, changed_s, before):
    """Return when the first record began on a process that was not there, after a change."""
    later = [
        began_s for _, _, pid, began_s in arrived if began_s > changed_s and pid not in before
    ]
    return min(later) - changed_s if later else float("nan")


def gap_s(arrived, since_s, until_s):
    """Return the longest time without output."""
    read = sorted(at_s for at_s, *_ in arrived if since_s <= at_s <= until_s)
    return float(np.diff(read).max()) if len(read) > 1 else until_s - since_s


def report(name, arrived, grown, changes, *, around_s=AROUND_S):
    """Print what was found."""
    firsts = []
    for changed_s, until_s in grown:
        before = {pid for _, _, pid, began_s in arrived if began_s < changed_s}
        within = [a for a in arrived if a[3] < until_s]
        firsts.append(taken_s(within, changed_s, before))
    gaps = [gap_s(arrived, at_s, at_s + around_s) for at_s in changes]
    usual = [gap_s(arrived, at_s - around_s, at_s) for at_s in changes]
    numbers = [number for _, number, *_ in arrived]
    told = [first for first in firsts if not isnan(first)]
    print(
        f"{name}: first record on a new processor after {1e3 * median(told):.0f} ms (median), "
        f"{1e3 * max(told):.0f} ms (worst of {len(told)})"
    )
    print(
        f"  longest gap in the output in {around_s:g} s after a change "
        f"{1e3 * median(gaps):.0f} ms (median), {1e3 * max(gaps):.0f} ms (worst); before it "
        f"{1e3 * median(usual):.0f} ms and {1e3 * max(usual):.0f} ms"
    )
    print(f"  {len(numbers) - len(set(numbers))} of {len(numbers)} records came twice")


def ours(servers, changes):
    """Change the running operator."""
    app = rescale_app.app
    measured = {"work": Hints(service_s=rescale_app.SERVICE_S)}
    topology = app.topology({"source": PER_S}, measured=measured)
    settings = SparkSettings(servers=servers, starting="latest")
    grown, changed = [], []
    with SparkEngine(app, "rescale_app:app", settings) as engine:
        engine.start(topology, Plan.here({"work": FEW}))
        sink = Worked(servers, app.topic("work"), of_json)
        with load_of(topology, app, servers):
            time.sleep(8)
            for _ in range(changes):
                for wanted in (MANY, FEW):
                    at_s = time.time()
                    engine.apply(Plan.here({"work": wanted}))
                    changed.append(at_s)
                    if wanted == MANY:
                        grown.append((at_s, at_s + AROUND_S))
                    time.sleep(2 * AROUND_S)
            time.sleep(2)
        sink.close()
    report("hosts", sink.arrived, grown, changed)


def theirs(servers, folder, changes):
    """Start another query with another number of tasks."""
    Cluster(servers).ensure(["plain-in", "plain-out"], 1)
    session = new_session(
        "repartition", jars=resolve_jars(), slots=MANY + 4, log=folder / "repartition.log"
    )
    function = repartition.working(rescale_app.SERVICE_S)

    def query(tasks):
        asked = repartition.Repartitioned(
            servers, "plain-in", "plain-out", folder / "plain", tasks=tasks
        )
        return repartition.start(session, asked, function)

    running, rng = query(FEW), np.random.default_rng(1)
    sink = Worked(servers, "plain-out", of_text)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    began_s = next_s = time.time()
    every_s, number, grown, changed = 20.0, 0, [], []
    wanted = [MANY, FEW] * changes
    while wanted or time.time() < changed[-1] + every_s:
        next_s += rng.exponential(1 / PER_S)
        time.sleep(max(0.0, next_s - time.time()))
        producer.produce("plain-in", str(number).encode())
        producer.poll(0)
        number += 1
        if wanted and time.time() > began_s + every_s * (1 + len(changed)):
            tasks, at_s = wanted.pop(0), time.time()
            running.stop()
            running = query(tasks)
            changed.append(at_s)
            grown.append((at_s, at_s + every_s))
    producer.flush()
    sink.close()
    running.stop()
    end_session(session)
    # a restart is felt for longer than a second
    report("repartition(k)", sink.arrived, grown, changed, around_s=every_s / 2)


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--short", action="store_true", help="two changes: does it work?")
    parser.add_argument("--alone", action="store_true", help="without repartition()")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, Broker(secured=False) as broker:
        ours(broker.bootstrap_servers, 2 if asked.short else asked.changes)
        if not asked.alone:
            theirs(broker.bootstrap_servers, Path(temporary), 1)


if __name__ == "__main__":
    main()
